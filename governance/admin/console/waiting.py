"""How much waits for a person's decision: the number beside Approvals."""

from __future__ import annotations

from django.http import HttpRequest


def waiting_for(request: HttpRequest) -> int | None:
    """Approvals that this person may decide; None shows no number."""
    return None
