"""The tool calls of assistant messages, with what people decided about them."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from agent.domain.ids import new_id
from agent.domain.states import OPEN_TOOL_CALL, TOOL_CALL_MOVES, ToolCallStatus, check_move
from agent.models.fields import (
    ID,
    NAME,
    REF,
    WORD,
    CleanExactCharField,
    CleanTextField,
    ExactCharField,
    JsonTextField,
)
from agent.models.message import Message
from agent.models.thread import Thread


class ToolCallQuerySet(models.QuerySet["ToolCall"]):
    def unsettled(self) -> Self:
        return self.filter(status__in=OPEN_TOOL_CALL)

    def awaiting_decision(self) -> Self:
        return self.filter(status=ToolCallStatus.PENDING_APPROVAL, decision=None)

    def overdue(self, now: datetime) -> Self:
        return self.awaiting_decision().filter(expires_at__lte=now)

    def of_run(self, run_id: str) -> Self:
        return self.filter(run_id=run_id)

    def move(self, call_id: str, seen: str, new: ToolCallStatus, **fields: object) -> bool:
        """Move a call from the status we saw; False when someone moved it first."""
        check_move(TOOL_CALL_MOVES, seen, new)
        return self.filter(pk=call_id, status=seen).update(status=new, **fields) == 1


class ToolCall(models.Model):
    """One call of a tool: its arguments, its outcome, and the decision it waited for."""

    id = ExactCharField(max_length=ID, primary_key=True, default=new_id)
    provider_call_id = ExactCharField(_("provider's id"), max_length=REF)
    message = models.ForeignKey(
        Message, models.CASCADE, db_index=False, related_name="call_rows", verbose_name=_("message")
    )
    thread = models.ForeignKey(
        Thread, models.CASCADE, db_index=False, related_name="call_rows", verbose_name=_("thread")
    )
    run_id = ExactCharField(_("run"), max_length=ID, null=True)
    actor_ref = ExactCharField(_("actor"), max_length=REF)
    tenant_ref = ExactCharField(_("tenant"), max_length=REF, null=True)
    agent_name = ExactCharField(_("agent"), max_length=NAME, null=True)
    tool_name = ExactCharField(_("tool"), max_length=NAME)
    tool_type = ExactCharField(_("type"), max_length=WORD)
    input = JsonTextField(_("input"))
    output = JsonTextField(_("output"), null=True)
    status = ExactCharField(_("status"), max_length=WORD)
    decision = ExactCharField(_("decision"), max_length=WORD, null=True)
    decided_at = models.DateTimeField(_("decided at"), null=True)
    decided_via = CleanExactCharField(_("decided via"), max_length=64, null=True)
    decision_reason = CleanTextField(_("reason"), null=True)
    answers = JsonTextField(_("answers"), null=True)
    executed_by_ref = ExactCharField(_("decided by"), max_length=REF, null=True)
    approver = ExactCharField(_("approver"), max_length=REF, null=True)
    four_eyes = models.BooleanField(_("four eyes"), default=False)
    confirmation = JsonTextField(_("confirmation"), null=True)
    expires_at = models.DateTimeField(_("expires at"), null=True)
    remember = models.BooleanField(_("remember"), default=False)
    proposal_id = ExactCharField(_("proposal"), max_length=REF, null=True)
    parent_call_id = ExactCharField(_("parent call"), max_length=ID, null=True)
    origin_call_id = ExactCharField(_("copied from"), max_length=ID, null=True)
    execution_ms = models.IntegerField(_("execution time (ms)"), null=True)
    error = CleanTextField(_("error"), null=True)
    created_at = models.DateTimeField(_("created at"))
    executed_at = models.DateTimeField(_("executed at"), null=True)
    settled_at = models.DateTimeField(_("settled at"), null=True)

    objects = ToolCallQuerySet.as_manager()

    class Meta:
        db_table = "agent_tool_call"
        verbose_name = _("tool call")
        verbose_name_plural = _("tool calls")
        constraints = [
            models.UniqueConstraint(fields=["run_id", "provider_call_id"], name="agent_call_run_provider_uq"),
        ]
        indexes = [
            models.Index(fields=["message"], name="agent_call_message_ix"),
            models.Index(fields=["thread", "created_at"], name="agent_call_thread_created_ix"),
            models.Index(fields=["status", "created_at"], name="agent_call_status_created_ix"),
            models.Index(fields=["status", "expires_at"], name="agent_call_status_expires_ix"),
            models.Index(fields=["run_id", "status"], name="agent_call_run_status_ix"),
            models.Index(fields=["tool_name", "created_at"], name="agent_call_tool_created_ix"),
            models.Index(fields=["created_at"], name="agent_call_created_ix"),
            models.Index(fields=["settled_at"], name="agent_call_settled_ix"),
            models.Index(fields=["decided_at", "id"], name="agent_call_decided_ix"),
        ]

    def __str__(self) -> str:
        return self.id
