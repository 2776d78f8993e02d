"""What the console reads fast: one bucket a day and combination of dimensions, kept true by `governance.rollups`.

`key` is the SHA-256 of the canonical JSON of a bucket's dimensions: a unique key works where one of them is NULL.
"""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from agent.domain.ids import new_id
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
from governance.screens import (
    Approvals,
    Live,
    Models,
    People,
    Prices,
    Runs,
    Spend,
    Threads,
    Tools,
    Usage,
)

SCREENS = (Spend, Usage, Models, People, Threads, Runs, Approvals, Tools, Prices, Live)


class UsageRollup(models.Model):
    """The ledger of a day by actor, agent, model and purpose."""

    id = models.BigAutoField(primary_key=True)
    day = models.DateField(_("day"))
    key = ExactCharField(_("key"), max_length=HASH)
    tenant_ref = ExactCharField(_("tenant"), max_length=REF, null=True)
    actor_ref = ExactCharField(_("actor"), max_length=REF)
    agent_name = ExactCharField(_("agent"), max_length=NAME, null=True)
    model_id = ExactCharField(_("model"), max_length=NAME)
    purpose = ExactCharField(_("purpose"), max_length=WORD)
    requests = models.PositiveBigIntegerField(_("requests"))
    input_tokens = models.PositiveBigIntegerField(_("input tokens"))
    output_tokens = models.PositiveBigIntegerField(_("output tokens"))
    cache_write_tokens = models.PositiveBigIntegerField(_("cache write tokens"))
    cache_read_tokens = models.PositiveBigIntegerField(_("cache read tokens"))
    cost_nanos = models.BigIntegerField(_("cost (nano-USD)"))
    reported_requests = models.PositiveBigIntegerField(_("requests with a reported cost"))
    reported_cost_nanos = models.BigIntegerField(_("reported cost (nano-USD)"))
    estimated_requests = models.PositiveBigIntegerField(_("requests with an estimated cost"))
    estimated_cost_nanos = models.BigIntegerField(_("estimated cost (nano-USD)"))
    unpriced_requests = models.PositiveBigIntegerField(_("unpriced requests"))
    unpriced_tokens = models.PositiveBigIntegerField(_("unpriced tokens"))

    class Meta:
        db_table = "governance_usage_rollup"
        verbose_name = _("usage rollup")
        verbose_name_plural = _("usage rollups")
        constraints = [models.UniqueConstraint(fields=["day", "key"], name="gov_usage_day_key_uq")]
        indexes = [
            models.Index(fields=["day"], name="gov_usage_day_ix"),
            models.Index(fields=["actor_ref", "day"], name="gov_usage_actor_day_ix"),
            models.Index(fields=["model_id", "day"], name="gov_usage_model_day_ix"),
            models.Index(fields=["tenant_ref", "day"], name="gov_usage_tenant_day_ix"),
        ]

    def __str__(self) -> str:
        return str(self.pk)


class UsageDayRollup(models.Model):
    """The ledger of a day without its actors, of which only the number is kept: what pages of a year read."""

    id = models.BigAutoField(primary_key=True)
    day = models.DateField(_("day"))
    key = ExactCharField(_("key"), max_length=HASH)
    tenant_ref = ExactCharField(_("tenant"), max_length=REF, null=True)
    agent_name = ExactCharField(_("agent"), max_length=NAME, null=True)
    model_id = ExactCharField(_("model"), max_length=NAME)
    purpose = ExactCharField(_("purpose"), max_length=WORD)
    actors = models.PositiveBigIntegerField(_("actors"))
    requests = models.PositiveBigIntegerField(_("requests"))
    input_tokens = models.PositiveBigIntegerField(_("input tokens"))
    output_tokens = models.PositiveBigIntegerField(_("output tokens"))
    cache_write_tokens = models.PositiveBigIntegerField(_("cache write tokens"))
    cache_read_tokens = models.PositiveBigIntegerField(_("cache read tokens"))
    cost_nanos = models.BigIntegerField(_("cost (nano-USD)"))
    reported_requests = models.PositiveBigIntegerField(_("requests with a reported cost"))
    reported_cost_nanos = models.BigIntegerField(_("reported cost (nano-USD)"))
    estimated_requests = models.PositiveBigIntegerField(_("requests with an estimated cost"))
    estimated_cost_nanos = models.BigIntegerField(_("estimated cost (nano-USD)"))
    unpriced_requests = models.PositiveBigIntegerField(_("unpriced requests"))
    unpriced_tokens = models.PositiveBigIntegerField(_("unpriced tokens"))

    class Meta:
        db_table = "governance_usage_day_rollup"
        verbose_name = _("usage day rollup")
        verbose_name_plural = _("usage day rollups")
        constraints = [models.UniqueConstraint(fields=["day", "key"], name="gov_usageday_day_key_uq")]
        indexes = [models.Index(fields=["day"], name="gov_usageday_day_ix")]

    def __str__(self) -> str:
        return str(self.pk)


class ThreadUsageRollup(models.Model):
    """The ledger of a day by thread."""

    id = models.BigAutoField(primary_key=True)
    day = models.DateField(_("day"))
    key = ExactCharField(_("key"), max_length=HASH)
    thread_id = ExactCharField(_("thread"), max_length=ID)
    tenant_ref = ExactCharField(_("tenant"), max_length=REF, null=True)
    actor_ref = ExactCharField(_("actor"), max_length=REF)
    # Days without it are the thread's first: conversations of a range are counted without telling them apart.
    previous_day = models.DateField(_("the thread's day before"), null=True)
    requests = models.PositiveBigIntegerField(_("requests"))
    input_tokens = models.PositiveBigIntegerField(_("input tokens"))
    output_tokens = models.PositiveBigIntegerField(_("output tokens"))
    cost_nanos = models.BigIntegerField(_("cost (nano-USD)"))
    unpriced_requests = models.PositiveBigIntegerField(_("unpriced requests"))
    unpriced_tokens = models.PositiveBigIntegerField(_("unpriced tokens"))

    class Meta:
        db_table = "governance_thread_usage_rollup"
        verbose_name = _("thread usage rollup")
        verbose_name_plural = _("thread usage rollups")
        constraints = [models.UniqueConstraint(fields=["day", "key"], name="gov_threadusage_day_key_uq")]
        indexes = [
            models.Index(fields=["day"], name="gov_threadusage_day_ix"),
            models.Index(fields=["thread_id", "day"], name="gov_threadusage_thread_ix"),
        ]

    def __str__(self) -> str:
        return str(self.pk)


class RunRollup(models.Model):
    """The runs of a day that were settled before the day's cut; durations as histograms of log buckets."""

    id = models.BigAutoField(primary_key=True)
    day = models.DateField(_("day"))
    key = ExactCharField(_("key"), max_length=HASH)
    tenant_ref = ExactCharField(_("tenant"), max_length=REF, null=True)
    agent_name = ExactCharField(_("agent"), max_length=NAME, null=True)
    status = ExactCharField(_("status"), max_length=WORD)
    error_code = CleanExactCharField(_("error code"), max_length=64, null=True)
    runs = models.PositiveBigIntegerField(_("runs"))
    retries = models.PositiveBigIntegerField(_("retries"))
    duration_histogram = JsonTextField(_("durations"))
    active_histogram = JsonTextField(_("active times"))

    class Meta:
        db_table = "governance_run_rollup"
        verbose_name = _("run rollup")
        verbose_name_plural = _("run rollups")
        constraints = [models.UniqueConstraint(fields=["day", "key"], name="gov_run_day_key_uq")]
        indexes = [models.Index(fields=["day"], name="gov_run_day_ix")]

    def __str__(self) -> str:
        return str(self.pk)


class ToolRollup(models.Model):
    """The tool calls of a day that were settled before the day's cut."""

    id = models.BigAutoField(primary_key=True)
    day = models.DateField(_("day"))
    key = ExactCharField(_("key"), max_length=HASH)
    tenant_ref = ExactCharField(_("tenant"), max_length=REF, null=True)
    agent_name = ExactCharField(_("agent"), max_length=NAME, null=True)
    tool_name = ExactCharField(_("tool"), max_length=NAME)
    tool_type = ExactCharField(_("type"), max_length=WORD)
    status = ExactCharField(_("status"), max_length=WORD)
    calls = models.PositiveBigIntegerField(_("calls"))
    execution_histogram = JsonTextField(_("execution times"))

    class Meta:
        db_table = "governance_tool_rollup"
        verbose_name = _("tool rollup")
        verbose_name_plural = _("tool rollups")
        constraints = [models.UniqueConstraint(fields=["day", "key"], name="gov_tool_day_key_uq")]
        indexes = [models.Index(fields=["day"], name="gov_tool_day_ix")]

    def __str__(self) -> str:
        return str(self.pk)


class RollupDay(models.Model):
    """Whether a day's buckets of one kind are built and true; a dirty day is read from the base rows."""

    id = models.BigAutoField(primary_key=True)
    kind = ExactCharField(_("kind"), max_length=WORD)
    day = models.DateField(_("day"))
    state = ExactCharField(_("state"), max_length=WORD)
    cut = models.DateTimeField(_("cut"), null=True)
    source_rows = models.PositiveBigIntegerField(_("source rows"), default=0)
    built_at = models.DateTimeField(_("built at"), null=True)
    time_zone = ExactCharField(_("time zone"), max_length=64, null=True)
    # The durations of the whole day, whatever tenant and agent: what pages of a year read.
    histograms = JsonTextField(_("durations"), null=True)

    class Meta:
        db_table = "governance_rollup_day"
        verbose_name = _("rollup day")
        verbose_name_plural = _("rollup days")
        constraints = [models.UniqueConstraint(fields=["kind", "day"], name="gov_rollupday_kind_day_uq")]
        indexes = [models.Index(fields=["day"], name="gov_rollupday_day_ix")]

    def __str__(self) -> str:
        return f"{self.kind} {self.day}"


class RepriceAudit(models.Model):
    """One batch of re-pricing: who, why, what, and the sums before and after."""

    id = ExactCharField(max_length=ID, primary_key=True, default=new_id)
    actor_ref = ExactCharField(_("actor"), max_length=REF)
    reason = CleanTextField(_("reason"))
    from_at = models.DateTimeField(_("from"), null=True)
    to_at = models.DateTimeField(_("to"), null=True)
    model_id = ExactCharField(_("model"), max_length=NAME, null=True)
    include_estimated = models.BooleanField(_("estimates included"), default=False)
    rows_priced = models.PositiveBigIntegerField(_("rows priced"))
    nanos_before = models.BigIntegerField(_("cost before (nano-USD)"))
    nanos_after = models.BigIntegerField(_("cost after (nano-USD)"))
    created_at = models.DateTimeField(_("created at"))

    class Meta:
        db_table = "governance_reprice_audit"
        verbose_name = _("re-pricing")
        verbose_name_plural = _("re-pricings")

    def __str__(self) -> str:
        return self.id


class DigestMark(models.Model):
    """Up to when an approver was told by e-mail what waits for them."""

    actor_ref = ExactCharField(_("actor"), max_length=REF, primary_key=True)
    told_until = models.DateTimeField(_("told until"))

    class Meta:
        db_table = "governance_digest_mark"
        verbose_name = _("digest mark")
        verbose_name_plural = _("digest marks")

    def __str__(self) -> str:
        return self.actor_ref
