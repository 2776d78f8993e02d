"""How long things took, as people say it: two units at most, never more digits than matter."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import formats
from django.utils.translation import gettext

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000


def took(ms: int) -> str:
    """`320 ms`, `3.2 s`, `2 min 10 s`, `1 h 3 min`, `2 d 4 h`."""
    ms = max(0, ms)
    if ms < SECOND:
        return gettext("%(count)s ms") % {"count": ms}
    if ms < MINUTE:
        return gettext("%(count)s s") % {"count": formats.number_format(ms // 100 / 10, decimal_pos=1)}
    if ms < HOUR:
        return gettext("%(minutes)s min %(seconds)s s") % {"minutes": ms // MINUTE, "seconds": ms % MINUTE // SECOND}
    if ms < DAY:
        return gettext("%(hours)s h %(minutes)s min") % {"hours": ms // HOUR, "minutes": ms % HOUR // MINUTE}
    return gettext("%(days)s d %(hours)s h") % {"days": ms // DAY, "hours": ms % DAY // HOUR}


def between(start: datetime, end: datetime) -> str:
    return took((end - start) // timedelta(milliseconds=1))
