"""How the console writes a figure: for people, in their language, never as nothing when it is unknown."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

from django.utils import formats
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from agent.admin.durations import took
from agent.conf import agent_settings
from governance.queries.changes import Difference

MOST_PLACES = 6
SMALLEST = Decimal(1).scaleb(-MOST_PLACES)
THOUSAND = 1_000
SCALES = ((1_000_000_000, "B"), (1_000_000, "M"), (THOUSAND, "k"))
NOTHING = "–"


def number(value: int) -> str:
    """A count, with the thousands apart as the language has them."""
    return str(formats.number_format(value, force_grouping=True))


def short_number(value: int) -> str:
    """A count in three digits or so: `3.2 M`; the exact one belongs beside it or on hover."""
    for scale, letter in SCALES:
        if value >= 10 * scale or (value >= scale and scale > THOUSAND):
            return f"{formats.number_format(Decimal(value) / scale, decimal_pos=1, force_grouping=True)} {letter}"
    return number(value)


def dollars(nanos: int) -> str:
    """Two places; more, up to six, where the amount is small, so that no known cost is shown as 0.00."""
    value = Decimal(nanos).scaleb(-9)
    if 0 < abs(value) < SMALLEST:
        return f"{'-' if value < 0 else ''}< ${formats.number_format(SMALLEST, decimal_pos=MOST_PLACES)}"
    rounded = value.quantize(Decimal(1).scaleb(-_places(value)), ROUND_HALF_UP)
    sign = "-" if rounded < 0 else ""
    return f"{sign}${formats.number_format(abs(rounded), decimal_pos=_places(value), force_grouping=True)}"


def _places(value: Decimal) -> int:
    """Two significant digits below a dollar."""
    if not value or abs(value) >= 1:
        return 2
    return min(MOST_PLACES, max(2, 1 - value.adjusted()))


def usd(amount: float) -> str:
    """Dollars as they are on the wire."""
    return dollars(round(Decimal(str(amount)).scaleb(9)))


def exact_dollars(nanos: int) -> str:
    """All that the ledger knows, for whoever hovers."""
    value = Decimal(nanos).scaleb(-9)
    places = max(2, -int(value.normalize().as_tuple().exponent))
    return f"{'-' if nanos < 0 else ''}${formats.number_format(abs(value), decimal_pos=places, force_grouping=True)}"


def plain_dollars(nanos: int | None) -> Decimal | None:
    """The amount for a form, without zeros that say nothing."""
    if nanos is None:
        return None
    value = Decimal(nanos).scaleb(-9).normalize()
    return value if int(value.as_tuple().exponent) < 0 else value.quantize(Decimal(1))


def cost(nanos: int | None, unpriced: int) -> str:
    """A sum with what it does not hold: `$12.34 + 3 unpriced`, or `unpriced` when nothing is known."""
    if nanos is None:
        return gettext("unpriced")
    if not unpriced:
        return dollars(nanos)
    return gettext("%(cost)s + %(count)s unpriced") % {"cost": dollars(nanos), "count": number(unpriced)}


def signed(text: str, difference: int) -> str:
    """A difference that says its direction: `+$3.10`; a falling one has its sign already."""
    return f"+{text}" if difference > 0 else text


def percent(ratio: Fraction) -> str:
    """`61 %`; small shares keep one place."""
    places = 1 if 0 < abs(ratio) < Fraction(1, 10) else 0
    return _percent(ratio, places)


def rate(ratio: float | None) -> str:
    """A rate that people compare: one place; unknown when there was nothing to divide by."""
    return NOTHING if ratio is None else _percent(Fraction(ratio), 1)


def _percent(ratio: Fraction, places: int) -> str:
    share = Decimal(ratio.numerator * 100) / Decimal(ratio.denominator)
    return gettext("%(number)s %%") % {"number": formats.number_format(share, decimal_pos=places, force_grouping=True)}


def short_id(value: str) -> str:
    """Enough of an id to tell it from its neighbours: the end, for the beginning is the time."""
    return value[-8:]


def days(count: int) -> str:
    return ngettext("%(n)s day", "%(n)s days", count) % {"n": number(count)}


def days_before(count: int) -> str:
    """How the comparison is called."""
    if count == 1:
        return gettext("the day before")
    return gettext("the %(days)s before") % {"days": days(count)}


def title(text: str | None, thread_id: str) -> str:
    """A conversation by its title; by its id for who may not read what people wrote."""
    return text or gettext("Conversation %(id)s") % {"id": thread_id[:8]}


def exact_time(instant: datetime) -> str:
    """An instant to the second, in the reporting zone that the days are of."""
    local = instant.astimezone(agent_settings().report_time_zone)
    return f"{formats.date_format(local, 'SHORT_DATE_FORMAT')} {local:%H:%M:%S} {local:%Z}"


def ago(instant: datetime, now: datetime) -> str:
    """How long ago, in one unit; a day or more ago it is the date that people look for."""
    passed = now - instant
    if passed < timedelta(minutes=1):
        return gettext("just now")
    if passed < timedelta(hours=1):
        count = passed // timedelta(minutes=1)
        return gettext("%(n)s min ago") % {"n": number(count)}
    if passed < timedelta(days=1):
        count = passed // timedelta(hours=1)
        return gettext("%(n)s h ago") % {"n": number(count)}
    local = instant.astimezone(agent_settings().report_time_zone)
    day = "j M" if local.year == now.year else "j M Y"
    return f"{formats.date_format(local, day)} {local:%H:%M}"


def left(deadline: datetime | None, now: datetime) -> str:
    """How long there is until a deadline, in one unit."""
    if deadline is None:
        return gettext("no deadline")
    rest = deadline - now
    if rest <= timedelta(0):
        return gettext("its time is over")
    return gettext("runs out in %(span)s") % {"span": span(rest)}


def span(time: timedelta) -> str:
    """A stretch of time in its largest unit, or two of them: `2 h 10 min`."""
    minutes = time // timedelta(minutes=1)
    if minutes < 1:
        return gettext("less than a minute")
    if minutes < 60:
        return gettext("%(n)s min") % {"n": number(minutes)}
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return gettext("%(hours)s h %(minutes)s min") % {"hours": number(hours), "minutes": number(minutes)}
    return days(hours // 24)


def changed(change: Difference) -> str:
    """A difference of costs in a table; what had none before is new."""
    return gettext("new") if not change.before else signed(dollars(change.difference), change.difference)


def short_day(day: date) -> str:
    return str(formats.date_format(day, "j M"))


def stretch(first: date, last: date) -> str:
    """A day, or the days of a week."""
    told = str(formats.date_format(first, "D j M"))
    return told if first == last else f"{told} – {formats.date_format(last, 'D j M')}"


def duration(ms: int | None, *, approximate: bool = False) -> str:
    """A time as people say it; one that comes from a histogram is marked."""
    if ms is None:
        return NOTHING
    return f"≈ {took(ms)}" if approximate else took(ms)


STATES = {
    "queued": _("waits for a worker"),
    "running": _("running"),
    "waiting": _("waits for a person"),
    "completed": _("completed"),
    "failed": _("failed"),
    "cancelled": _("cancelled"),
    "pending_approval": _("waits for a decision"),
    "executed": _("carried out after a decision"),
    "auto_executed": _("carried out"),
    "rejected": _("rejected"),
    "expired": _("ran out of time"),
}
PAUSES = {
    "run_failed": _("the last answer failed"),
    "cancelled": _("the last answer was stopped"),
    "quota_exceeded": _("a limit is reached"),
    "start_failed": _("the next message could not be started"),
}


def state(word: str) -> str:
    """A stored state as people say it; one that this release does not know as it is."""
    return str(STATES.get(word, word))


def pause(reason: str) -> str:
    """Why the messages of a conversation wait, as people say it."""
    return str(PAUSES.get(reason, reason))
