"""The two acts of the price screen: a price that supersedes another, and pricing rows again. Forms and their words."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agent.conf import agent_settings
from agent.domain.commands import NewPrice
from agent.models.tenants import Tenants
from governance.days import DayRange
from governance.repricing import Repricing

NANOS = 10**9
PLACES = 9


def dollars_field(label: Any, *, required: bool = True) -> forms.DecimalField:  # noqa: ANN401  lazy
    """Dollars for a million tokens, written as the language writes numbers."""
    return forms.DecimalField(
        label=label, required=required, min_value=Decimal(0), max_digits=16, decimal_places=PLACES, localize=True
    )


class PriceForm(forms.Form):
    model_id = forms.CharField(label=_("model"), max_length=128)
    input = dollars_field(_("input, $ per million"))
    output = dollars_field(_("output, $ per million"))
    cache_write = dollars_field(_("cache write, if it differs"), required=False)
    cache_write_1h = dollars_field(_("cache write for an hour, if it differs"), required=False)
    cache_read = dollars_field(_("cache read, if it differs"), required=False)
    effective_from = forms.DateTimeField(
        label=_("in force from (empty: now)"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )
    note = forms.CharField(label=_("note"), required=False, max_length=255)

    def price(self, by: str) -> NewPrice:
        """What was asked for; an earlier instant touches no row that is written already."""
        said = self.cleaned_data
        return NewPrice(
            model_id=said["model_id"],
            input_per_million_nanos=int(said["input"] * NANOS),
            output_per_million_nanos=int(said["output"] * NANOS),
            cache_write_per_million_nanos=_nanos(said["cache_write"]),
            cache_write_1h_per_million_nanos=_nanos(said["cache_write_1h"]),
            cache_read_per_million_nanos=_nanos(said["cache_read"]),
            effective_from=self._instant(said["effective_from"]),
            source="console",
            created_by_ref=by,
            note=said["note"] or None,
        )

    def _instant(self, local: datetime | None) -> datetime | None:
        """The wall clock of the reporting zone, which the page names."""
        if local is None:
            return None
        return timezone.make_naive(local).replace(tzinfo=agent_settings().report_time_zone)


class RepriceForm(forms.Form):
    from_day = forms.DateField(label=_("from"), required=False, widget=forms.DateInput(attrs={"type": "date"}))
    to_day = forms.DateField(label=_("to"), required=False, widget=forms.DateInput(attrs={"type": "date"}))
    only_model = forms.CharField(label=_("model (empty: all)"), required=False, max_length=128)
    include_estimated = forms.BooleanField(label=_("also what is an estimate"), required=False)
    reason = forms.CharField(label=_("reason"), max_length=500)

    def clean(self) -> dict[str, Any]:
        said = super().clean() or {}
        first, last = said.get("from_day"), said.get("to_day")
        if said.get("include_estimated") and not (first and last):
            self.add_error("from_day", gettext("Both days are needed to estimate again."))
        if bool(first) != bool(last):
            self.add_error("to_day", gettext("Both days, or none for every unpriced row."))
        return said

    def order(self, by: str, tenants: Tenants) -> Repricing:
        said = self.cleaned_data
        span = DayRange.of(said["from_day"], said["to_day"]).span if said["from_day"] else None
        return Repricing(
            by=by,
            reason=said["reason"],
            start=None if span is None else span.start,
            end=None if span is None else span.end,
            model_id=said["only_model"] or None,
            include_estimated=said["include_estimated"],
            tenants=tenants,
        )


def _nanos(dollars: Decimal | None) -> int | None:
    return None if dollars is None else int(dollars * NANOS)
