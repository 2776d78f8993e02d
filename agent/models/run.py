"""Runs (the recorded execution of a turn) and their journal."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from agent.domain.ids import new_id
from agent.domain.states import OPEN_RUN, RUN_MOVES, RunStatus, check_move
from agent.models.fields import (
    HASH,
    ID,
    NAME,
    REF,
    WORD,
    CleanExactCharField,
    CleanTextField,
    ExactCharField,
    JsonTextField,
)


class RunQuerySet(models.QuerySet["Run"]):
    def open(self) -> Self:
        return self.filter(status__in=OPEN_RUN)

    def claimable(self, now: datetime) -> Self:
        """Queued, or running under a lease that has lapsed."""
        return self.filter(Q(status=RunStatus.QUEUED) | Q(status=RunStatus.RUNNING, lease_expires_at__lte=now))

    def leased_to(self, owner: str, attempt: int) -> Self:
        """The fence: what a worker writes must still be its own."""
        return self.filter(status=RunStatus.RUNNING, lease_owner=owner, attempt=attempt)

    def move(self, run_id: str, seen: str, new: RunStatus, **fields: object) -> bool:
        """Move a run from the status we saw; False when someone moved it first."""
        check_move(RUN_MOVES, seen, new)
        return self.filter(pk=run_id, status=seen).update(status=new, **fields) == 1


class Run(models.Model):
    """One turn, from admission to settlement; its id is the id of its stream."""

    id = ExactCharField(max_length=ID, primary_key=True, default=new_id)
    thread_id = ExactCharField(_("thread"), max_length=ID)
    actor_ref = ExactCharField(_("actor"), max_length=REF)
    tenant_ref = ExactCharField(_("tenant"), max_length=REF, null=True)
    actor = JsonTextField(_("actor at admission"))
    agent_name = ExactCharField(_("agent"), max_length=NAME, null=True)
    model_id = ExactCharField(_("model"), max_length=NAME, null=True)
    persona = ExactCharField(_("persona"), max_length=NAME, null=True)
    status = ExactCharField(_("status"), max_length=WORD)
    trigger = ExactCharField(_("trigger"), max_length=WORD)
    input = JsonTextField(_("input"))
    parent_run_id = ExactCharField(_("parent run"), max_length=ID, null=True)
    parent_call_id = ExactCharField(_("parent call"), max_length=ID, null=True)
    stream_run_id = ExactCharField(_("stream"), max_length=ID)
    frame_base = models.IntegerField(_("frame base"), default=0)
    depth = models.IntegerField(_("depth"), default=0)
    lease_owner = ExactCharField(_("lease owner"), max_length=REF, null=True)
    lease_expires_at = models.DateTimeField(_("lease expires at"), null=True)
    attempt = models.IntegerField(_("attempt"), default=0)
    recoveries = models.IntegerField(_("recoveries"), default=0)
    dispatched_at = models.DateTimeField(_("dispatched at"), null=True)
    effect_position = models.IntegerField(_("effect position"), null=True)
    effect_name = ExactCharField(_("effect"), max_length=NAME, null=True)
    cancel_requested_at = models.DateTimeField(_("cancel requested at"), null=True)
    prompt_hash = ExactCharField(_("prompt hash"), max_length=HASH, null=True)
    retries = models.IntegerField(_("retries"), default=0)
    created_at = models.DateTimeField(_("created at"))
    started_at = models.DateTimeField(_("started at"), null=True)
    settled_at = models.DateTimeField(_("settled at"), null=True)
    duration_ms = models.BigIntegerField(_("duration (ms)"), null=True)
    active_ms = models.BigIntegerField(_("active time (ms)"), default=0)
    error_code = CleanExactCharField(_("error code"), max_length=64, null=True)
    error_message = CleanTextField(_("error message"), null=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        db_table = "agent_run"
        verbose_name = _("run")
        verbose_name_plural = _("runs")
        permissions = [("cancel_run", "Can cancel runs")]
        indexes = [
            models.Index(fields=["status", "lease_expires_at"], name="agent_run_status_lease_ix"),
            models.Index(fields=["started_at"], name="agent_run_started_ix"),
            models.Index(fields=["settled_at"], name="agent_run_settled_ix"),
            models.Index(fields=["thread_id", "started_at"], name="agent_run_thread_started_ix"),
            models.Index(fields=["actor_ref", "started_at"], name="agent_run_actor_started_ix"),
            models.Index(fields=["tenant_ref", "started_at"], name="agent_run_tenant_started_ix"),
            models.Index(fields=["parent_run_id"], name="agent_run_parent_ix"),
            models.Index(fields=["agent_name", "started_at"], name="agent_run_agent_started_ix"),
            # The order of lists; MariaDB has no index of an expression, and sorts.
            models.Index(Coalesce("started_at", "created_at"), "id", name="agent_run_begun_ix"),
        ]

    def __str__(self) -> str:
        return self.id


class RunStepQuerySet(models.QuerySet["RunStep"]):
    def in_order(self) -> Self:
        return self.order_by("position")

    def oldest_after(self, step_id: int) -> Self:
        """Of all runs, in the order in which they were recorded."""
        return self.filter(pk__gt=step_id).order_by("pk")


class RunStep(models.Model):
    """One row of a run's journal: a step that is done and is never done again."""

    id = models.BigAutoField(primary_key=True)
    run = models.ForeignKey(Run, models.CASCADE, db_index=False, related_name="steps", verbose_name=_("run"))
    position = models.IntegerField(_("position"))
    name = ExactCharField(_("name"), max_length=NAME)
    payload = CleanTextField(_("payload"))
    created_at = models.DateTimeField(_("created at"))

    objects = RunStepQuerySet.as_manager()

    class Meta:
        db_table = "agent_run_step"
        verbose_name = _("run step")
        verbose_name_plural = _("run steps")
        constraints = [
            models.UniqueConstraint(fields=["run", "position"], name="agent_run_step_position_uq"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} #{self.position}"
