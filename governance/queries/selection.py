"""What a query is asked about: days, filters, and the tenants that the asker may see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from django.db.models import Q

from agent.domain.text import is_exact
from agent.errors import Invalid
from agent.models.tenants import Tenants, within
from governance.days import DayRange

NONE = "(none)"  # matches what is absent
LONGEST = 255
FILTERS = ("tenant_ref", "agent", "model", "actor", "purpose")
WIRE = {"tenantRef": "tenant_ref"} | {name: name for name in FILTERS if name != "tenant_ref"}
COLUMNS: Mapping[str, str] = {
    "tenant_ref": "tenant_ref",
    "agent": "agent_name",
    "model": "model_id",
    "actor": "actor_ref",
    "purpose": "purpose",
}

Value = str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A range of days with exact filters; `tenants` None is all of them, a tenant None those without one."""

    range: DayRange
    filters: Mapping[str, Value] = field(default_factory=dict)
    tenants: Tenants = None
    text: bool = True  # whether the asker may read what people and models said

    @classmethod
    def of(
        cls,
        days: DayRange,
        filters: Mapping[str, str] | None = None,
        *,
        tenants: Tenants = None,
        text: bool = True,
    ) -> Selection:
        """Filters as texts, `(none)` for what is absent; `Invalid` names one that does not exist."""
        given = filters or {}
        for name in given:
            if name not in FILTERS:
                raise Invalid.field(name, f"no filter; there are {', '.join(FILTERS)}")
        return cls(
            range=days,
            filters={name: value_of(name, value) for name, value in given.items()},
            tenants=tenants,
            text=text,
        )

    def during(self, days: DayRange) -> Selection:
        return replace(self, range=days)

    def q(self, *names: str) -> Q:
        """The conditions of these filters (all, when none are named) and of the tenants, on columns of ours."""
        asked = names or FILTERS
        found = within(self.tenants)
        for name in asked:
            if name in self.filters:
                found &= equals(COLUMNS[name], self.filters[name])
        return found

    def has(self, *names: str) -> bool:
        return any(name in self.filters for name in names)


def value_of(name: str, text: str) -> Value:
    """A filter's text as the column's value."""
    if len(text) > LONGEST or not is_exact(text):
        raise Invalid.field(name, f"at most {LONGEST} characters, without NUL")
    return None if text == NONE else text


def equals(column: str, value: Value) -> Q:
    return Q(**{f"{column}__isnull": True}) if value is None else Q(**{column: value})
