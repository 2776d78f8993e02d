"""Text that every database and every driver can hold."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

REPLACEMENT = "\ufffd"
# Categories of characters that show nothing: a text of these alone says nothing.
_UNSEEN = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})
# Letters and marks that show nothing either: fillers, the empty braille cell, joiners and selectors of a glyph.
_EMPTY = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {chr(code) for code in range(0xFE00, 0xFE10)}
_TRICKY = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
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


def visible(value: str) -> str:
    """The text with what is not seen itself but changes how the rest looks (controls, bidi marks) written out."""
    if value.replace("\n", "").isprintable():  # nothing of the kind, as in nearly every text
        return value
    return "".join(_shown(character) for character in value)


def _shown(character: str) -> str:
    if character == "\n" or unicodedata.category(character) not in _TRICKY:
        return character
    return "".join(f"\\u{unit:04x}" for unit in _utf16(character))


def _utf16(character: str) -> Iterator[int]:
    data = character.encode("utf-16-be", "surrogatepass")
    return (int.from_bytes(data[at : at + 2]) for at in range(0, len(data), 2))


def clean_cut(value: str, length: int) -> str:
    """What a provider names: cleaned, and cut to its column."""
    return clean_text(value[:length])


def is_blank(value: str) -> bool:
    """Whether the text shows nothing: white space, controls and zero-width characters only."""
    return all(character in _EMPTY or unicodedata.category(character) in _UNSEEN for character in value)
