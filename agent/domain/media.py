"""Files that people attach: what their bytes say they are, and the name they may keep."""

from __future__ import annotations

import codecs
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any, Final

from agent.domain.text import clean_text

HEAD: Final = 4096  # bytes that are looked at
NAME_MAX: Final = 255
NAMELESS: Final = "file"

SIGNATURES: Final[tuple[tuple[int, bytes, str], ...]] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBPVP8", "image/webp"),
    (0, b"%PDF-", "application/pdf"),
)
MARKUP: Final = ("<!doctype", "<html", "<head", "<body", "<script", "<iframe", "<svg", "<?xml", "<!--")
SVG, HTML, PLAIN, CSV = "image/svg+xml", "text/html", "text/plain", "text/csv"
KNOWN_TYPES: Final = frozenset({*(kind for _, _, kind in SIGNATURES), SVG, HTML, PLAIN, CSV})
DEFAULT_TYPES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf", PLAIN, CSV)
SHOWN_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})  # nothing in them can run


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A file on its way into staging: its type is that of its bytes; `content` stands at its beginning."""

    name: str
    content_type: str
    size: int
    content: IO[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A staged file as its owner may use it; the url was made for them, and for a while."""

    media_id: str
    url: str
    content_type: str
    name: str
    size: int | None = None
    staged_at: datetime | None = None

    def to_json(self) -> dict[str, Any]:
        """As a message carries it."""
        return {"mediaId": self.media_id, "url": self.url, "contentType": self.content_type, "name": self.name}


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingUpload:
    """An upload that was begun: where its bytes go, and how."""

    media_id: str
    upload_url: str
    method: str = "PUT"


def type_of(head: bytes, name: str) -> str | None:
    """What the first bytes of a file are; None for what nobody here knows.

    The name only tells one text from another.
    """
    for place, signature, kind in SIGNATURES:
        if head[place : place + len(signature)] == signature and (place == 0 or head.startswith(b"RIFF")):
            return kind
    text = _text(head[:HEAD])
    if text is None:
        return None
    start = text.lstrip("\ufeff \t\r\n\f").lower()
    if start.startswith(MARKUP):
        return SVG if "<svg" in start else HTML
    return CSV if name.lower().endswith(".csv") else PLAIN


def safe_name(name: str) -> str:
    """The last part of a name, without what would hide how it ends or where it lies."""
    last = clean_text(name).replace("\\", "/").rpartition("/")[2]
    shown = "".join(sign for sign in last if unicodedata.category(sign)[0] != "C").strip(" .")
    return _cut(shown) or NAMELESS


def carried_by(lists: Iterable[Sequence[Mapping[str, Any]] | None]) -> Iterator[str]:
    """The media ids in the attachments of messages."""
    for attachments in lists:
        yield from (item["mediaId"] for item in attachments or () if "mediaId" in item)


def _cut(name: str) -> str:
    """At most what the column holds; the ending stays."""
    stem, dot, ending = name.rpartition(".")
    if len(name) <= NAME_MAX or not stem or len(ending) > 20:
        return name[:NAME_MAX]
    return stem[: NAME_MAX - len(ending) - 1] + dot + ending


def _text(head: bytes) -> str | None:
    """The head as text; None when it is none. A sign that is cut at the end is no fault."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return None
    return None if any(sign < " " and sign not in "\t\n\r\f" for sign in text) else text
