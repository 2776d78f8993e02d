"""How the plain admin shows a stored value: escaped, never as a link of its own, ids without separators."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from django.contrib.admin import AdminSite
from django.contrib.admin.utils import quote
from django.db import models
from django.urls import reverse
from django.utils import formats, timezone
from django.utils.html import format_html
from django.utils.translation import gettext

from agent.models import Message, ModelPrice, Run, Thread, ToolCall
from agent.models.fields import CleanTextField, JsonTextField

EMPTY = "-"
SHOWN = 20_000  # characters of one text on a page

# Columns that hold the id of another row.
TARGETS: Final[Mapping[str, type[models.Model]]] = {
    "thread_id": Thread,
    "thread_ref": Thread,
    "origin_thread_id": Thread,
    "message_id": Message,
    "run_id": Run,
    "run_ref": Run,
    "active_run_id": Run,
    "parent_run_id": Run,
    "stream_run_id": Run,
    "origin_run_id": Run,
    "parent_call_id": ToolCall,
    "origin_call_id": ToolCall,
    "price_id": ModelPrice,
}


class Column:
    """One column of a table, as a callable that the admin takes for a list and for a form alike."""

    def __init__(self, field: models.Field[Any, Any], site: AdminSite) -> None:
        self.field = field
        self.site = site
        self.__name__ = field.attname
        self.reads: tuple[str, ...] = (field.attname,)
        self.short_description = field.verbose_name
        self.boolean = isinstance(field, models.BooleanField)

    def __call__(self, row: models.Model) -> str | bool:
        value = getattr(row, self.field.attname)
        if self.boolean:
            return bool(value)
        return EMPTY if value is None else self._shown(value)

    def _shown(self, value: object) -> str:
        if isinstance(self.field, JsonTextField):
            return preformatted(pretty(value))
        if isinstance(self.field, CleanTextField):
            return preformatted(str(value))
        if self.field.attname in TARGETS:
            return self._linked(str(value))
        return self._plain(value)

    def _plain(self, value: object) -> str:
        if self.field.primary_key:
            return str(value)
        if isinstance(value, datetime):
            return instant(value)
        if isinstance(value, int):
            return self._number(value)
        return str(formats.localize(value))

    def _number(self, value: int) -> str:
        if self.field.attname.endswith("_at_ms"):
            return instant_of_ms(value)
        return str(formats.number_format(value))

    def _linked(self, value: str) -> str:
        return link_to(self.site, TARGETS[self.field.attname], value)


class Named:
    """A value worked out from a row, as a column of its own."""

    def __init__(self, name: str, label: Any, show: Callable[[Any], str], *reads: str) -> None:  # noqa: ANN401  lazy
        self.__name__ = name
        self.short_description = label
        self.boolean = False
        self.show = show
        self.reads = reads  # the columns it is worked out from

    def __call__(self, row: models.Model) -> str:
        return self.show(row)


def link_to(site: AdminSite, model: type[models.Model], pk: str) -> str:
    """The id as a link to its page, where the site has one."""
    if not site.is_registered(model):
        return pk
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_change"
    return format_html('<a href="{}">{}</a>', reverse(name, args=[quote(pk)], current_app=site.name), pk)


def preformatted(text: str) -> str:
    """Text with its own lines and blanks, cut where a page would become too heavy."""
    if len(text) > SHOWN:
        rest = gettext("(%(count)s characters, cut here)") % {"count": formats.number_format(len(text))}
        text = f"{text[:SHOWN]}\n{rest}"
    return format_html('<pre class="agent-text">{}</pre>', text)


def pretty(value: object) -> str:
    """JSON for people; a lone surrogate, which no answer can carry, is shown as its escape."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return text.encode("utf-8", "backslashreplace").decode()


def instant(value: datetime) -> str:
    return str(formats.localize(timezone.localtime(value) if timezone.is_aware(value) else value))


def instant_of_ms(value: int) -> str:
    try:
        return instant(datetime.fromtimestamp(value / 1000, UTC))
    except (ValueError, OverflowError, OSError):
        return str(value)


def usd(nanos: int | None, absent: str) -> str:
    """Exact dollars: at least two places, as many as it takes."""
    if nanos is None:
        return absent
    value = Decimal(nanos).scaleb(-9)
    places = max(2, -int(value.normalize().as_tuple().exponent))
    return str(formats.number_format(value, decimal_pos=places))
