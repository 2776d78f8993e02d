"""Vendors' error texts without the secrets they like to repeat, and not longer than a row needs."""

from __future__ import annotations

from collections.abc import Iterable

from agent.domain import redaction

LONGEST = 2000


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The text for a log or a row, at most 2000 characters, with keys, credentials and passwords in URLs hidden."""
    text = redaction.redact(text, secrets)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
