"""Personal agents of people, experimental (spec 12): four tables that may change in any release."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Exists, F, Max, OuterRef, Q
from django.db.models.functions import Greatest
from django.utils.translation import gettext_lazy as _

from agent.domain.ids import new_id
from agent.domain.personal import ASKING, ConnectionStatus, ConversationStatus, before
from agent.models.fields import HASH, ID, NAME, REF, WORD, ExactCharField, JsonTextField


class PersonalConversationQuerySet(models.QuerySet["PersonalConversation"]):
    def of(self, client_id: str, user_id: str) -> Self:
        return self.filter(client_id=client_id, user_id=user_id)

    def changed_last(self) -> Self:
        return self.order_by("-updated_at", "id")

    def waiting(self) -> Self:
        """Idle ones that are not closed, in which something asks for an answer."""
        asking = PersonalEvent.objects.asking().filter(conversation_id=OuterRef("pk"), seq__gt=OuterRef("turn_seq"))
        return self.filter(Exists(asking), active_run_id=None).exclude(status=ConversationStatus.CLOSED)

    def take_turn(self, conversation_id: str, run_id: str, *, seen: int, seq: int) -> bool:
        """The event of this number becomes the run's; False when a run is at work or another took a turn."""
        same = self.filter(pk=conversation_id, active_run_id=None, turn_seq=seen)
        return same.update(active_run_id=run_id, turn_seq=seq) == 1

    def finish_turn(self, conversation_id: str, run_id: str) -> bool:
        return self.filter(pk=conversation_id, active_run_id=run_id).update(active_run_id=None) == 1

    def claim_reader(self, conversation_id: str, holder: str, *, until_ms: int, now_ms: int) -> bool:
        free = Q(reader_holder=None) | Q(reader_holder=holder) | Q(reader_until_ms__lte=now_ms)
        same = self.filter(free, pk=conversation_id)
        return same.update(reader_holder=holder, reader_until_ms=until_ms) == 1

    def release_reader(self, conversation_id: str, holder: str) -> bool:
        same = self.filter(pk=conversation_id, reader_holder=holder)
        return same.update(reader_holder=None, reader_until_ms=None) == 1

    def pruned(self, conversation_id: str, seq: int) -> bool:
        """Events up to this number are gone."""
        return self.filter(pk=conversation_id).update(pruned_seq=Greatest(F("pruned_seq"), seq)) == 1


class PersonalConversation(models.Model):
    """What one client says to one of our agents for one person, and how far it is answered."""

    id = ExactCharField(max_length=ID, primary_key=True, default=new_id)
    client_id = ExactCharField(_("client"), max_length=REF)
    user_id = ExactCharField(_("person"), max_length=REF)
    account_ref = ExactCharField(_("account"), max_length=REF, null=True)
    agent_name = ExactCharField(_("agent"), max_length=NAME)
    thread_id = ExactCharField(_("thread"), max_length=ID, null=True)
    parent_id = ExactCharField(_("parent conversation"), max_length=ID, null=True)
    open_direct_id = ExactCharField(_("open direct conversation"), max_length=ID, null=True)
    status = ExactCharField(_("status"), max_length=WORD, default=ConversationStatus.OPEN)
    responder = ExactCharField(_("responder"), max_length=NAME, null=True)
    context = JsonTextField(_("context"))
    active_run_id = ExactCharField(_("active run"), max_length=ID, null=True)
    turn_seq = models.BigIntegerField(_("number of the last turn"), default=0)
    grant_info = JsonTextField(_("grant"), null=True)
    reader_holder = ExactCharField(_("holder of the reply"), max_length=REF, null=True)
    reader_until_ms = models.BigIntegerField(_("reply held until (ms)"), null=True)
    pruned_seq = models.BigIntegerField(_("pruned up to number"), default=0)
    created_at = models.DateTimeField(_("created at"))
    updated_at = models.DateTimeField(_("updated at"))

    objects = PersonalConversationQuerySet.as_manager()

    class Meta:
        db_table = "agent_pap_conversation"
        verbose_name = _("personal agent conversation")
        verbose_name_plural = _("personal agent conversations")
        indexes = [
            models.Index(fields=["client_id", "user_id", "updated_at"], name="agent_pap_conv_list_ix"),
            models.Index(fields=["thread_id"], name="agent_pap_conv_thread_ix"),
            models.Index(fields=["user_id"], name="agent_pap_conv_user_ix"),
        ]

    def __str__(self) -> str:
        return self.id


class PersonalEventQuerySet(models.QuerySet["PersonalEvent"]):
    def after(self, conversation_id: str, seq: int) -> Self:
        return self.filter(conversation_id=conversation_id, seq__gt=seq).order_by("seq")

    def up_to(self, conversation_id: str, seq: int) -> Self:
        return self.filter(conversation_id=conversation_id, seq__lte=seq)

    def asking(self) -> Self:
        return self.filter(type__in=ASKING)

    def last_seq(self, conversation_id: str) -> int:
        """The highest number that is kept; 0 where nothing is."""
        highest: int | None = self.filter(conversation_id=conversation_id).aggregate(last=Max("seq"))["last"]
        return highest or 0


class PersonalEvent(models.Model):
    """An entry of a conversation's log; its id is the cursor of who has read it."""

    id = ExactCharField(max_length=ID, primary_key=True)
    conversation = models.ForeignKey(
        PersonalConversation, models.CASCADE, db_index=False, related_name="events", verbose_name=_("conversation")
    )
    seq = models.BigIntegerField(_("number"))
    type = ExactCharField(_("type"), max_length=NAME)
    event = JsonTextField(_("event"))
    event_key = ExactCharField(_("key"), max_length=REF, null=True)
    created_at = models.DateTimeField(_("created at"))

    objects = PersonalEventQuerySet.as_manager()

    class Meta:
        db_table = "agent_pap_event"
        verbose_name = _("personal agent event")
        verbose_name_plural = _("personal agent events")
        constraints = [
            models.UniqueConstraint(fields=["conversation", "seq"], name="agent_pap_event_seq_uq"),
            models.UniqueConstraint(fields=["conversation", "event_key"], name="agent_pap_event_key_uq"),
        ]

    def __str__(self) -> str:
        return self.id


class PersonalMessageQuerySet(models.QuerySet["PersonalMessage"]):
    def named(self, owner: str, message_id: str) -> Self:
        return self.filter(owner=owner, message_id=message_id)

    def in_progress(self) -> Self:
        return self.filter(response=None)


class PersonalMessage(models.Model):
    """A delivered message, so that delivering it again does nothing; without a response it is in progress."""

    id = ExactCharField(max_length=ID, primary_key=True, default=new_id)
    owner = ExactCharField(_("owner"), max_length=REF)
    message_id = ExactCharField(_("message"), max_length=REF)
    fingerprint = ExactCharField(_("fingerprint"), max_length=HASH)
    conversation_id = ExactCharField(_("conversation"), max_length=ID, null=True)
    response = JsonTextField(_("response"), null=True)
    created_at = models.DateTimeField(_("created at"))

    objects = PersonalMessageQuerySet.as_manager()

    class Meta:
        db_table = "agent_pap_message"
        verbose_name = _("personal agent message")
        verbose_name_plural = _("personal agent messages")
        constraints = [
            models.UniqueConstraint(fields=["owner", "message_id"], name="agent_pap_message_owner_uq"),
        ]
        indexes = [
            models.Index(fields=["conversation_id"], name="agent_pap_message_conv_ix"),
        ]

    def __str__(self) -> str:
        return self.id


class PersonalConnectionQuerySet(models.QuerySet["PersonalConnection"]):
    def of(self, client_id: str, user_id: str) -> Self:
        return self.filter(client_id=client_id, user_id=user_id)

    def authenticating(self, token_hash: str, now: datetime) -> Self:
        lasting = Q(token_expires_at=None) | Q(token_expires_at__gt=now)
        return self.filter(lasting, token_hash=token_hash, status=ConnectionStatus.ACTIVE)

    def move(self, new: str, now: datetime) -> bool:
        """Move the one row that this names; False where there is no way to that state."""
        lost = {"token_hash": None, "token_expires_at": None} if new == ConnectionStatus.REVOKED else {}
        return self.filter(status__in=before(new)).update(status=new, updated_at=now, **lost) == 1


class PersonalConnection(models.Model):
    """What one client may do for one person; its token is known by its hash alone."""

    id = ExactCharField(max_length=ID, primary_key=True, default=new_id)
    client_id = ExactCharField(_("client"), max_length=REF)
    user_id = ExactCharField(_("person"), max_length=REF)
    account_ref = ExactCharField(_("account"), max_length=REF, null=True)
    status = ExactCharField(_("status"), max_length=WORD)
    scopes = JsonTextField(_("scopes"))
    token_hash = ExactCharField(_("hash of the token"), max_length=HASH, null=True, unique=True)
    token_expires_at = models.DateTimeField(_("token expires at"), null=True)
    metadata = JsonTextField(_("metadata"), null=True)
    created_at = models.DateTimeField(_("created at"))
    updated_at = models.DateTimeField(_("updated at"))
    last_used_at = models.DateTimeField(_("last used at"), null=True)

    objects = PersonalConnectionQuerySet.as_manager()

    class Meta:
        db_table = "agent_pap_connection"
        verbose_name = _("personal agent connection")
        verbose_name_plural = _("personal agent connections")
        constraints = [
            models.UniqueConstraint(fields=["client_id", "user_id"], name="agent_pap_conn_client_uq"),
        ]
        indexes = [
            models.Index(fields=["user_id"], name="agent_pap_conn_user_ix"),
        ]

    def __str__(self) -> str:
        return self.id
