"""What model calls cost: the append-only ledger and the dated prices."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from agent.domain.ids import new_id
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


class ModelPriceQuerySet(models.QuerySet["ModelPrice"]):
    def of_model(self, model_id: str) -> Self:
        return self.filter(model_id=model_id)

    def in_force(self, at: datetime) -> Self:
        """The newest first of those effective by then; the first of one model is its price."""
        return self.filter(effective_from__lte=at).order_by("-effective_from")


class ModelPrice(models.Model):
    """A dated price. A row is never edited: superseding inserts one."""

    id = ExactCharField(max_length=ID, primary_key=True, default=new_id)
    model_id = ExactCharField(_("model"), max_length=NAME)
    input_per_million_nanos = models.BigIntegerField(_("input per million (nano-USD)"))
    output_per_million_nanos = models.BigIntegerField(_("output per million (nano-USD)"))
    cache_write_per_million_nanos = models.BigIntegerField(_("cache write per million (nano-USD)"), null=True)
    cache_read_per_million_nanos = models.BigIntegerField(_("cache read per million (nano-USD)"), null=True)
    cache_write_1h_per_million_nanos = models.BigIntegerField(
        _("cache write for an hour per million (nano-USD)"), null=True
    )
    tiers = JsonTextField(_("tiers"), null=True)
    effective_from = models.DateTimeField(_("effective from"))
    source = CleanExactCharField(_("source"), max_length=128)
    created_by_ref = ExactCharField(_("created by"), max_length=REF, null=True)
    note = CleanTextField(_("note"), null=True)
    created_at = models.DateTimeField(_("created at"))

    objects = ModelPriceQuerySet.as_manager()

    class Meta:
        db_table = "agent_model_price"
        verbose_name = _("model price")
        verbose_name_plural = _("model prices")
        constraints = [
            models.UniqueConstraint(fields=["model_id", "effective_from"], name="agent_price_model_from_uq"),
        ]

    def __str__(self) -> str:
        return f"{self.model_id} {self.effective_from:%Y-%m-%d %H:%M}"


class UsageEntryQuerySet(models.QuerySet["UsageEntry"]):
    def unpriced(self) -> Self:
        return self.filter(cost_nanos=None)

    def between(self, start: datetime, end: datetime) -> Self:
        """Half-open: the start belongs to it, the end does not."""
        return self.filter(created_at__gte=start, created_at__lt=end)


class UsageEntry(models.Model):
    """One model call in the ledger, priced when written. Only re-pricing may update its four price columns."""

    id = models.BigAutoField(primary_key=True)
    thread_id = ExactCharField(_("thread"), max_length=ID)
    run_id = ExactCharField(_("run"), max_length=ID, null=True)
    message_id = ExactCharField(_("message"), max_length=ID, null=True)
    actor_ref = ExactCharField(_("actor"), max_length=REF)
    tenant_ref = ExactCharField(_("tenant"), max_length=REF, null=True)
    agent_name = ExactCharField(_("agent"), max_length=NAME, null=True)
    model_id = ExactCharField(_("model"), max_length=NAME)
    purpose = ExactCharField(_("purpose"), max_length=WORD)
    step_key = ExactCharField(_("step"), max_length=NAME, null=True)
    input_tokens = models.PositiveBigIntegerField(_("input tokens"))
    output_tokens = models.PositiveBigIntegerField(_("output tokens"))
    cache_write_tokens = models.PositiveBigIntegerField(_("cache write tokens"), null=True)
    cache_read_tokens = models.PositiveBigIntegerField(_("cache read tokens"), null=True)
    cache_write_1h_tokens = models.PositiveBigIntegerField(_("cache write tokens for an hour"), null=True)
    tokens_source = ExactCharField(_("source of the counts"), max_length=WORD)
    reported_cost_nanos = models.BigIntegerField(_("reported cost (nano-USD)"), null=True)
    estimated_cost_nanos = models.BigIntegerField(_("estimated cost (nano-USD)"), null=True)
    price = models.ForeignKey(
        ModelPrice, models.PROTECT, db_index=False, related_name="usage", null=True, verbose_name=_("price")
    )
    cost_nanos = models.BigIntegerField(_("cost (nano-USD)"), null=True)
    created_at = models.DateTimeField(_("created at"))

    objects = UsageEntryQuerySet.as_manager()

    class Meta:
        db_table = "agent_token_usage"
        verbose_name = _("usage entry")
        verbose_name_plural = _("usage entries")
        constraints = [
            models.UniqueConstraint(fields=["run_id", "step_key"], name="agent_usage_run_step_uq"),
        ]
        indexes = [
            models.Index(fields=["created_at"], name="agent_usage_created_ix"),
            models.Index(fields=["actor_ref", "created_at"], name="agent_usage_actor_created_ix"),
            # What a quota sums is in it: the busiest person's day is read without the rows.
            models.Index(
                fields=["actor_ref", "created_at", "cost_nanos", "input_tokens", "output_tokens"],
                name="agent_usage_quota_ix",
            ),
            models.Index(fields=["tenant_ref", "created_at"], name="agent_usage_tenant_created_ix"),
            models.Index(fields=["thread_id", "created_at"], name="agent_usage_thread_created_ix"),
            models.Index(fields=["model_id", "created_at"], name="agent_usage_model_created_ix"),
            models.Index(fields=["run_id"], name="agent_usage_run_ix"),
            models.Index(fields=["cost_nanos", "created_at"], name="agent_usage_cost_created_ix"),
        ]

    def __str__(self) -> str:
        return str(self.pk)
