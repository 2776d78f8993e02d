"""The tables of the console as lists and pages."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from agent.admin.base import ReadOnlyAdmin
from governance.models import (
    DigestMark,
    RepriceAudit,
    RollupDay,
    RunRollup,
    ThreadUsageRollup,
    ToolRollup,
    UsageDayRollup,
    UsageRollup,
)


class RollupAdmin(ReadOnlyAdmin):
    ordering = ("-day", "-pk")
    search_fields: ClassVar[tuple[str, ...]] = ("day",)


class UsageRollupAdmin(RollupAdmin):
    columns = ("id", "day", "tenant_ref", "actor_ref", "agent_name", "model_id", "purpose", "requests", "cost_nanos")
    search_fields = ("day", "tenant_ref", "actor_ref", "model_id")


class UsageDayRollupAdmin(RollupAdmin):
    columns = ("id", "day", "tenant_ref", "agent_name", "model_id", "purpose", "actors", "requests", "cost_nanos")


class ThreadUsageRollupAdmin(RollupAdmin):
    columns = ("id", "day", "thread_id", "tenant_ref", "actor_ref", "requests", "cost_nanos", "unpriced_requests")


class RunRollupAdmin(RollupAdmin):
    columns = ("id", "day", "tenant_ref", "agent_name", "status", "error_code", "runs", "retries")


class ToolRollupAdmin(RollupAdmin):
    columns = ("id", "day", "tenant_ref", "agent_name", "tool_name", "tool_type", "status", "calls")


class RollupDayAdmin(RollupAdmin):
    columns = ("id", "kind", "day", "state", "cut", "source_rows", "built_at", "time_zone")


class RepriceAuditAdmin(ReadOnlyAdmin):
    columns = (
        "id",
        "actor_ref",
        "model_id",
        "from_at",
        "to_at",
        "rows_priced",
        "nanos_before",
        "nanos_after",
        "created_at",
    )
    search_fields = ("id",)


class DigestMarkAdmin(ReadOnlyAdmin):
    columns = ("actor_ref", "told_until")
    ordering = ("-actor_ref",)
    search_fields = ("actor_ref",)


SCREENS: dict[type[models.Model], type[ReadOnlyAdmin]] = {
    DigestMark: DigestMarkAdmin,
    RepriceAudit: RepriceAuditAdmin,
    RollupDay: RollupDayAdmin,
    RunRollup: RunRollupAdmin,
    ThreadUsageRollup: ThreadUsageRollupAdmin,
    ToolRollup: ToolRollupAdmin,
    UsageDayRollup: UsageDayRollupAdmin,
    UsageRollup: UsageRollupAdmin,
}
