"""The messages of a thread, ordered by their number."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from agent.domain.ids import new_id
from agent.domain.states import MessageRole
from agent.models.fields import ID, NAME, WORD, CleanTextField, ExactCharField, JsonListField, JsonTextField
from agent.models.thread import Thread

BLANK = Q(role=MessageRole.ASSISTANT, content="", tool_calls=None)


class MessageQuerySet(models.QuerySet["Message"]):
    def in_order(self) -> Self:
        return self.order_by("seq")

    def newest_first(self) -> Self:
        return self.order_by("-seq")

    def before(self, seq: int) -> Self:
        return self.filter(seq__lt=seq)

    def since(self, seq: int) -> Self:
        return self.filter(seq__gte=seq)

    def of_run(self, run_id: str) -> Self:
        return self.filter(run_id=run_id)

    def answers(self) -> Self:
        return self.filter(role=MessageRole.ASSISTANT)

    def shown_to_models(self) -> Self:
        """Without assistant messages that hold neither content nor calls."""
        return self.exclude(BLANK)


class Message(models.Model):
    """What a person, an agent or the system said; `seq` is the order, never a timestamp."""

    id = ExactCharField(max_length=ID, primary_key=True, default=new_id)
    thread = models.ForeignKey(
        Thread, models.CASCADE, db_index=False, related_name="messages", verbose_name=_("thread")
    )
    seq = models.IntegerField(_("number"))
    role = ExactCharField(_("role"), max_length=WORD)
    content = CleanTextField(_("content"))
    tool_calls = JsonListField(_("tool calls"), null=True)
    tool_results = JsonListField(_("tool results"), null=True)
    attachments = JsonListField(_("attachments"), null=True)
    follow_ups = JsonListField(_("follow-ups"), null=True)
    usage = JsonTextField(_("usage"), null=True)
    agent_name = ExactCharField(_("agent"), max_length=NAME, null=True)
    persona = ExactCharField(_("persona"), max_length=NAME, null=True)
    run_id = ExactCharField(_("run"), max_length=ID, null=True)
    reasoning = CleanTextField(_("reasoning"), null=True)
    reasoning_ms = models.IntegerField(_("reasoning time (ms)"), null=True)
    ui = JsonListField(_("components"), null=True)
    provider_state = CleanTextField(_("provider state"), null=True)
    feedback = JsonTextField(_("feedback"), null=True)
    action_proposal_outcome = JsonTextField(_("proposal outcome"), null=True)
    created_at = models.DateTimeField(_("created at"))

    objects = MessageQuerySet.as_manager()

    class Meta:
        db_table = "agent_message"
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        constraints = [
            models.UniqueConstraint(fields=["thread", "seq"], name="agent_message_thread_seq_uq"),
        ]
        indexes = [
            models.Index(fields=["thread", "role", "seq"], name="agent_message_thread_role_ix"),
            models.Index(fields=["run_id"], name="agent_message_run_ix"),
        ]

    def __str__(self) -> str:
        return self.id
