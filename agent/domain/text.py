"""Text that every database and every driver can hold."""

from __future__ import annotations

import re
import unicodedata

REPLACEMENT = "\ufffd"
# Categories of characters that show nothing: a text of these alone says nothing.
_UNSEEN = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def is_exact(value: str) -> bool:
    """Whether the text can be stored as it is: PostgreSQL refuses NUL, every driver a lone surrogate."""
    if "\x00" in value:
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def clean_text(value: str) -> str:
    """The text with a visible mark in place of each NUL and lone surrogate."""
    return value if is_exact(value) else _UNSTORABLE.sub(REPLACEMENT, value)


def escaped(value: str) -> str:
    """The text with its NULs and lone surrogates written out, so that they can be stored and seen."""
    return value if is_exact(value) else _UNSTORABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", value)


def clean_cut(value: str, length: int) -> str:
    """What a provider names: cleaned, and cut to its column."""
    return clean_text(value[:length])


def is_blank(value: str) -> bool:
    """Whether the text shows nothing: white space, controls and zero-width characters only."""
    return all(unicodedata.category(character) in _UNSEEN for character in value)
