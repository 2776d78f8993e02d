"""How much waits for a person's decision: the number beside Approvals."""

from __future__ import annotations

from django.http import HttpRequest

from agent.errors import NotAuthenticated
from governance.days import DayRange
from governance.inbox import Desk
from governance.queries.selection import Selection


def waiting_for(request: HttpRequest) -> int | None:
    """Approvals that this person may decide; None shows no number."""
    try:
        desk = Desk.of(request)
    except NotAuthenticated:
        return None
    if not desk.permitted:
        return None
    return len(desk.waiting(Selection.of(DayRange.of()), {}).mine) or None
