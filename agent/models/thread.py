"""A conversation, and what is kept of its dropped beginning."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from agent.domain.ids import new_id
from agent.models.fields import HASH, ID, NAME, REF, CleanCharField, CleanTextField, ExactCharField, JsonTextField

NEW_CHAT = "New chat"


class ThreadQuerySet(models.QuerySet["Thread"]):
    def alive(self) -> Self:
        return self.filter(deleted_at=None)

    def listed(self) -> Self:
        return self.alive().filter(transient=False)

    def deleted_before(self, moment: datetime) -> Self:
        return self.filter(deleted_at__lt=moment)

    def owned_by(self, actor_ref: str) -> Self:
        return self.filter(actor_ref=actor_ref)

    def held_by(self, run_id: str) -> Self:
        return self.filter(active_run_id=run_id)

    def claim(self, thread_id: str, run_id: str, *, replacing: str | None = None) -> bool:
        """Hold the thread for a run: when it is idle, held by that run already, or held by the one it replaces."""
        free = Q(active_run_id=None) | Q(active_run_id__in=[run_id] if replacing is None else [run_id, replacing])
        return self.filter(free, pk=thread_id).update(active_run_id=run_id) == 1

    def release(self, thread_id: str, run_id: str) -> bool:
        """Make the thread idle; False when the run does not hold it."""
        return self.held_by(run_id).filter(pk=thread_id).update(active_run_id=None) == 1

    def advance(self, thread_id: str, count: int = 1) -> bool:
        """Take the next `count` message numbers; the caller reads `last_seq` in the same transaction."""
        return self.filter(pk=thread_id).update(last_seq=F("last_seq") + count) == 1


class Thread(models.Model):
    """A conversation of one owner with the agents of the site."""

    id = ExactCharField(max_length=ID, primary_key=True, default=new_id)
    external_id = ExactCharField(_("external id"), max_length=REF, null=True)
    actor_ref = ExactCharField(_("owner"), max_length=REF)
    tenant_ref = ExactCharField(_("tenant"), max_length=REF, null=True)
    title = CleanCharField(_("title"), max_length=255, default=NEW_CHAT)
    transient = models.BooleanField(_("transient"), default=False)
    active_run_id = ExactCharField(_("active run"), max_length=ID, null=True)
    default_agent = ExactCharField(_("default agent"), max_length=NAME, null=True)
    model = ExactCharField(_("model"), max_length=NAME, null=True)
    persona = ExactCharField(_("persona"), max_length=NAME, null=True)
    queue_pause = JsonTextField(_("queue pause"), null=True)
    last_seq = models.IntegerField(_("last number"), default=0)
    created_at = models.DateTimeField(_("created at"))
    updated_at = models.DateTimeField(_("updated at"))
    deleted_at = models.DateTimeField(_("deleted at"), null=True)

    objects = ThreadQuerySet.as_manager()

    class Meta:
        db_table = "agent_thread"
        verbose_name = _("thread")
        verbose_name_plural = _("threads")
        constraints = [
            models.UniqueConstraint(fields=["actor_ref", "external_id"], name="agent_thread_actor_ext_uq"),
        ]
        indexes = [
            models.Index(fields=["actor_ref", "updated_at"], name="agent_thread_actor_upd_ix"),
            models.Index(fields=["tenant_ref", "updated_at"], name="agent_thread_tenant_upd_ix"),
            models.Index(fields=["active_run_id"], name="agent_thread_active_run_ix"),
            models.Index(fields=["updated_at", "id"], name="agent_thread_updated_ix"),
        ]

    def __str__(self) -> str:
        return self.id


class ThreadSummaryQuerySet(models.QuerySet["ThreadSummary"]):
    def below(self, up_to_seq: int) -> Self:
        return self.filter(up_to_seq__lt=up_to_seq)

    def reaching(self, seq: int) -> Self:
        return self.filter(up_to_seq__gte=seq)


class ThreadSummary(models.Model):
    """What stands for the messages that a history policy no longer sends; a higher `up_to_seq` replaces a lower."""

    id = ExactCharField(max_length=ID, primary_key=True, default=new_id)
    thread = models.ForeignKey(
        Thread, models.CASCADE, db_index=False, related_name="summaries", verbose_name=_("thread")
    )
    up_to_seq = models.IntegerField(_("up to number"))
    text = CleanTextField(_("text"))
    policy_fingerprint = ExactCharField(_("policy fingerprint"), max_length=HASH)
    model_id = ExactCharField(_("model"), max_length=NAME)
    created_at = models.DateTimeField(_("created at"))
    updated_at = models.DateTimeField(_("updated at"))

    objects = ThreadSummaryQuerySet.as_manager()

    class Meta:
        db_table = "agent_thread_summary"
        verbose_name = _("thread summary")
        verbose_name_plural = _("thread summaries")
        constraints = [
            models.UniqueConstraint(fields=["thread", "policy_fingerprint"], name="agent_summary_thread_policy_uq"),
        ]

    def __str__(self) -> str:
        return self.id
