"""The tables of the agent as lists and pages: what each shows, what of it is text, and what it is found by."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agent.admin.base import ReadOnlyAdmin, Rows, WordFilter
from agent.admin.columns import Named, usd
from agent.admin.personal import (
    PersonalConnectionAdmin,
    PersonalConversationAdmin,
    PersonalEventAdmin,
    PersonalMessageAdmin,
)
from agent.admin.runs import RunAdmin
from agent.domain.states import Decision, ToolCallStatus
from agent.models import (
    ActionProposal,
    ConfirmToken,
    IdempotencyKey,
    MemoryFact,
    Message,
    ModelPrice,
    PersonalConnection,
    PersonalConversation,
    PersonalEvent,
    PersonalMessage,
    QueuedMessage,
    Run,
    RunStep,
    StagedAttachment,
    StreamFrame,
    Thread,
    ThreadSummary,
    ToolCall,
    UsageEntry,
)
from agent.models.tenants import Tenants, within


class ToolCallStatusFilter(WordFilter):
    title = _("status")
    parameter_name = "status"
    words = ToolCallStatus


class DecisionFilter(WordFilter):
    title = _("decision")
    parameter_name = "decision"
    words = Decision


class UnpricedFilter(WordFilter):
    title = _("price")
    parameter_name = "priced"
    words = ("no",)

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        return [("no", gettext("unpriced"))]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        return queryset.filter(cost_nanos=None) if self.value() == "no" else queryset


def _by(owner: type[Thread | Run], column: str, tenants: Tenants) -> Q:
    """Rows that hold the id of what a tenant owns, in a plain column."""
    if tenants is None:
        return Q()
    return Q(**{f"{column}__in": owner._default_manager.filter(within(tenants)).values("pk")})


def untitled(row: Thread) -> str:
    return gettext("Conversation %(id)s") % {"id": row.id[:8]}


class ThreadAdmin(ReadOnlyAdmin):
    text = frozenset({"title", "queue_pause"})
    stand_ins = {"title": Named("title", _("title"), untitled, "id")}
    columns = ("id", "title", "actor_ref", "tenant_ref", "active_run_id", "updated_at", "deleted_at")
    search_fields = ("id", "actor_ref", "tenant_ref", "active_run_id")
    related = (
        (Message, "thread_id"),
        (ToolCall, "thread_id"),
        (Run, "thread_id"),
        (UsageEntry, "thread_id"),
        (QueuedMessage, "thread_id"),
        (ThreadSummary, "thread_id"),
    )


class MessageAdmin(ReadOnlyAdmin):
    tenant = "thread__tenant_ref"
    text = frozenset(
        {
            "content",
            "tool_calls",
            "tool_results",
            "attachments",
            "follow_ups",
            "reasoning",
            "ui",
            "provider_state",
            "feedback",
        }
    )
    columns = ("id", "thread_id", "seq", "role", "agent_name", "run_id", "created_at")
    search_fields = ("id", "thread_id", "run_id")
    related = ((ToolCall, "message_id"),)


class ToolCallAdmin(ReadOnlyAdmin):
    text = frozenset({"input", "output", "decision_reason", "answers", "confirmation", "error"})
    columns = ("id", "tool_name", "tool_type", "status", "decision", "actor_ref", "thread_id", "run_id", "created_at")
    ordering = ("-created_at", "-pk")
    list_filter = (ToolCallStatusFilter,)
    search_fields = ("id", "thread_id", "message_id", "run_id", "tool_name")


class ThreadSummaryAdmin(ReadOnlyAdmin):
    tenant = "thread__tenant_ref"
    text = frozenset({"text"})
    columns = ("id", "thread_id", "up_to_seq", "model_id", "updated_at")
    search_fields = ("id", "thread_id")

    def get_fieldsets(self, request: HttpRequest, obj: models.Model | None = None) -> Any:  # noqa: ANN401
        """A reader is told that no person wrote this."""
        told = _("Made by a model out of the messages up to this number. It approves nothing.")
        return [(name, {**options, "description": told}) for name, options in super().get_fieldsets(request, obj)]


class QueuedMessageAdmin(ReadOnlyAdmin):
    tenant = "thread__tenant_ref"
    text = frozenset({"content", "attachments", "page_context", "ui_capabilities", "host_context"})
    columns = ("id", "thread_id", "position", "actor_ref", "agent_name", "interrupt", "created_at")
    search_fields = ("id", "thread_id")


class IdempotencyKeyAdmin(ReadOnlyAdmin):
    text = frozenset({"key", "outcome"})
    columns = ("id", "actor_ref", "thread_id", "run_id", "created_at")
    search_fields = ("id", "actor_ref")

    def of_tenants(self, tenants: Tenants) -> Q:
        return _by(Thread, "thread_id", tenants)


class RunStepAdmin(ReadOnlyAdmin):
    tenant = "run__tenant_ref"
    text = frozenset({"payload"})
    columns = ("id", "run_id", "position", "name", "created_at")
    search_fields = ("run_id",)


class StreamFrameAdmin(ReadOnlyAdmin):
    text = frozenset({"frame", "error"})
    columns = ("id", "run_id", "seq", "created_at_ms")
    search_fields = ("run_id",)

    def of_tenants(self, tenants: Tenants) -> Q:
        return _by(Run, "run_id", tenants)


class UsageEntryAdmin(ReadOnlyAdmin):
    opened_by = ("governance.view_spend",)
    columns = (
        "id",
        "created_at",
        "actor_ref",
        "agent_name",
        "model_id",
        "purpose",
        "input_tokens",
        "output_tokens",
        Named("cost", _("cost (USD)"), lambda row: usd(row.cost_nanos, gettext("unpriced")), "cost_nanos"),
        "thread_id",
        "run_id",
    )
    ordering = ("-created_at", "-pk")
    list_filter = (UnpricedFilter,)
    search_fields = ("id", "thread_id", "run_id", "actor_ref", "tenant_ref", "model_id")


def per_million(name: str, label: object) -> Named:
    return Named(name, label, lambda row: usd(getattr(row, f"{name}_nanos"), "-"), f"{name}_nanos")


class ModelPriceAdmin(ReadOnlyAdmin):
    columns = (
        "id",
        "model_id",
        "effective_from",
        per_million("input_per_million", _("input per million (USD)")),
        per_million("output_per_million", _("output per million (USD)")),
        per_million("cache_write_per_million", _("cache write per million (USD)")),
        per_million("cache_read_per_million", _("cache read per million (USD)")),
        "source",
    )
    ordering = ("model_id", "-effective_from")
    search_fields = ("id", "model_id")

    def of_tenants(self, tenants: Tenants) -> Q:
        return Q()  # a price is that of the whole site


class ActionProposalAdmin(ReadOnlyAdmin):
    text = frozenset({"create_fingerprint", "proposal"})
    columns = (
        "id",
        "tool_name",
        "decision",
        "execution_status",
        "delivery_status",
        "actor_ref",
        "approver",
        "thread_ref",
        "created_at_ms",
    )
    ordering = ("-decision", "-created_at_ms", "-pk")  # the one index that holds every row by time
    list_filter = (DecisionFilter,)
    search_fields = ("id", "scope_key", "outcome_id_key", "replacement_group_key")


class ConfirmTokenAdmin(ReadOnlyAdmin):
    columns = ("hash", "actor_ref", "tool", "expires_at_ms")
    ordering = ("-expires_at_ms", "-pk")
    search_fields = ("hash",)


class MemoryFactAdmin(ReadOnlyAdmin):
    text = frozenset({"key", "text"})
    columns = ("id", "scope", "key", "origin_author", "pinned", "updated_at")
    search_fields = ("id", "scope")

    def of_tenants(self, tenants: Tenants) -> Q:
        """What a tenant shares is that tenant's; whose a person's memory is does not stand in it."""
        if tenants is None:
            return Q()
        return Q(scope__in=[f"tenant:{tenant}" for tenant in tenants if tenant is not None])


class StagedAttachmentAdmin(ReadOnlyAdmin):
    text = frozenset({"name", "file"})
    columns = ("id", "actor_ref", "name", "content_type", "size", "status", "created_at")
    search_fields = ("id", "actor_ref")


SCREENS: dict[type[models.Model], type[ReadOnlyAdmin]] = {
    ActionProposal: ActionProposalAdmin,
    ConfirmToken: ConfirmTokenAdmin,
    IdempotencyKey: IdempotencyKeyAdmin,
    MemoryFact: MemoryFactAdmin,
    Message: MessageAdmin,
    ModelPrice: ModelPriceAdmin,
    PersonalConnection: PersonalConnectionAdmin,
    PersonalConversation: PersonalConversationAdmin,
    PersonalEvent: PersonalEventAdmin,
    PersonalMessage: PersonalMessageAdmin,
    QueuedMessage: QueuedMessageAdmin,
    Run: RunAdmin,
    RunStep: RunStepAdmin,
    StagedAttachment: StagedAttachmentAdmin,
    StreamFrame: StreamFrameAdmin,
    Thread: ThreadAdmin,
    ThreadSummary: ThreadSummaryAdmin,
    ToolCall: ToolCallAdmin,
    UsageEntry: UsageEntryAdmin,
}
