"""The tables of personal agents (spec 12, experimental) as lists and pages."""

from __future__ import annotations

from django.db.models import Q

from agent.admin.base import ReadOnlyAdmin
from agent.models import PersonalConversation, PersonalEvent, PersonalMessage, Thread
from agent.models.tenants import Tenants, within


def _conversations(tenants: Tenants, column: str) -> Q:
    """Rows of conversations that a tenant's threads hold; before it has a thread nobody's tenant is known."""
    if tenants is None:
        return Q()
    threads = Thread._default_manager.filter(within(tenants)).values("pk")
    return Q(**{f"{column}__in": PersonalConversation._default_manager.filter(thread_id__in=threads).values("pk")})


class PersonalConversationAdmin(ReadOnlyAdmin):
    text = frozenset({"context"})
    columns = ("id", "client_id", "user_id", "agent_name", "thread_id", "status", "active_run_id", "updated_at")
    search_fields = ("id", "client_id", "user_id", "thread_id")
    related = ((PersonalEvent, "conversation_id"), (PersonalMessage, "conversation_id"))

    def of_tenants(self, tenants: Tenants) -> Q:
        return _conversations(tenants, "pk")


class PersonalEventAdmin(ReadOnlyAdmin):
    text = frozenset({"event", "event_key"})
    columns = ("id", "conversation_id", "seq", "type", "created_at")
    search_fields = ("id", "conversation_id")

    def of_tenants(self, tenants: Tenants) -> Q:
        return _conversations(tenants, "conversation_id")


class PersonalMessageAdmin(ReadOnlyAdmin):
    text = frozenset({"message_id", "response"})
    columns = ("id", "owner", "conversation_id", "created_at")
    search_fields = ("id", "owner", "conversation_id")

    def of_tenants(self, tenants: Tenants) -> Q:
        return _conversations(tenants, "conversation_id")


class PersonalConnectionAdmin(ReadOnlyAdmin):
    text = frozenset({"metadata"})
    columns = ("id", "client_id", "user_id", "status", "token_expires_at", "last_used_at")
    search_fields = ("id", "client_id", "user_id")
