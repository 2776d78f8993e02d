"""A file on its way out: one range at a time, and in a form in which nothing of it can run on this site."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from typing import IO, Final

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.utils.http import content_disposition_header

from agent.domain.media import SHOWN_TYPES, Attachment

PIECE: Final = 64 * 1024
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})\Z")


def download(request: HttpRequest, file: Attachment, content: IO[bytes], *, size: int) -> HttpResponseBase:
    """The bytes that were asked for: all, or the one range of the request."""
    asked = _range(request.headers.get("Range"), size)
    part = asked or range(size)
    content.seek(part.start)
    streams = isinstance(request, ASGIRequest)
    response = StreamingHttpResponse(
        _pieces_async(content, len(part)) if streams else _pieces(content, len(part)),
        status=200 if asked is None else 206,
    )
    response._resource_closers.append(content.close)  # type: ignore[attr-defined]  # also when nobody reads
    response["Content-Length"] = str(len(part))
    if asked is not None:
        response["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{size}"
    return _guarded(response, file)


def _guarded(response: HttpResponseBase, file: Attachment) -> HttpResponseBase:
    shown = file.content_type in SHOWN_TYPES
    charset = "; charset=utf-8" if file.content_type.startswith("text/") else ""
    response["Content-Type"] = file.content_type + charset
    response["Content-Disposition"] = content_disposition_header(not shown, file.name) or "inline"
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response["X-Content-Type-Options"] = "nosniff"
    response["Cross-Origin-Resource-Policy"] = "same-origin"
    response["Referrer-Policy"] = "no-referrer"  # the address holds a token
    response["Cache-Control"] = "private, no-transform, max-age=300"
    response["Content-Encoding"] = "identity"  # a part of a file is no file that GZipMiddleware could pack
    response["Accept-Ranges"] = "bytes"
    return response


def _range(value: str | None, size: int) -> range | None:
    """The one range of a header, cut to the file; None = the whole file, also for what does not lie in it."""
    found = _RANGE.match(value or "")
    if found is None or found.groups() == ("", ""):
        return None  # none, or several: the whole is a lawful answer to both
    first, last = found.groups()
    start = int(first) if first else max(0, size - int(last))
    stop = min(size, int(last) + 1) if first and last else size
    return range(start, stop) if start < stop else None


def _pieces(content: IO[bytes], left: int) -> Iterator[bytes]:
    while left and (piece := content.read(min(PIECE, left))):
        left -= len(piece)
        yield piece


async def _pieces_async(content: IO[bytes], left: int) -> AsyncIterator[bytes]:
    while left and (piece := await asyncio.to_thread(content.read, min(PIECE, left))):
        left -= len(piece)
        yield piece
