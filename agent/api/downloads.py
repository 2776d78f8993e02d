"""A file on its way out: one range at a time, and in a form in which nothing of it can run on this site."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from typing import IO, Final

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.http import content_disposition_header

from agent.domain.media import SHOWN_TYPES, Attachment

PIECE: Final = 64 * 1024
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})\Z")


def download(request: HttpRequest, file: Attachment, content: IO[bytes], *, size: int) -> HttpResponseBase:
    """The bytes that were asked for: all, or the one range of the request."""
    asked = _range(request.headers.get("Range"), size)
    if asked is not None and asked.start >= asked.stop:
        content.close()
        return _guarded(HttpResponse(status=416, headers={"Content-Range": f"bytes */{size}"}), file)
    part = asked or range(size)
    content.seek(part.start)
    streams = isinstance(request, ASGIRequest)
    response = StreamingHttpResponse(
        _pieces_async(content, len(part)) if streams else _pieces(content, len(part)),
        status=200 if asked is None else 206,
    )
    response._resource_closers.append(content.close)  # also when nobody reads
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
    """The one range of a header, cut to the file, empty when it lies behind it; None = the whole file is asked for."""
    found = _RANGE.match(value or "")
    if found is None or found.groups() == ("", ""):
        return None  # none, or several: the whole is a lawful answer to both
    first, last = found.groups()
    if not first:
        return range(max(0, size - int(last)), size)
    start, stop = int(first), min(size, int(last) + 1) if last else size
    return None if last and int(last) < start else range(start, stop)


def _pieces(content: IO[bytes], left: int) -> Iterator[bytes]:
    while left and (piece := content.read(min(PIECE, left))):
        left -= len(piece)
        yield piece


async def _pieces_async(content: IO[bytes], left: int) -> AsyncIterator[bytes]:
    while left and (piece := await asyncio.to_thread(content.read, min(PIECE, left))):
        left -= len(piece)
        yield piece
