"""The title a conversation gets from the user's first words (spec 03 §9)."""

from __future__ import annotations

NEW_CHAT = "New chat"
LONGEST = 60
CUT = 57


def wants_title(title: str) -> bool:
    return title in ("", NEW_CHAT)


def title_for(text: str) -> str:
    """The text on one line; longer than 60 characters it is cut to 57 and `...`; an empty one stays `New chat`."""
    line = " ".join(text.split())
    if len(line) > LONGEST:
        line = line[:CUT] + "..."
    return line or NEW_CHAT
