"""Files on their way in: a multipart form that is cut off where it grows too large, and parts of an upload."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, Final, cast

from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import TemporaryFileUploadHandler
from django.http import HttpRequest
from rest_framework.request import Request

from agent.errors import Invalid
from agent.setting_rules import HARD_LIMIT

MULTIPART: Final = "multipart/form-data"
_RANGE = re.compile(r"bytes (?:\*|([0-9]{1,18})-([0-9]{1,18}))/([0-9]{1,18}|\*)\Z")


class _OneFile(TemporaryFileUploadHandler):
    """Takes one file, to disk, and stops reading at the first byte that is too many."""

    def __init__(self, request: HttpRequest, most: int) -> None:
        super().__init__(request)
        self.most, self.read, self.files = most, 0, 0

    def new_file(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  (as Django has it)
        if self.files:
            self.file.close()
            raise Invalid.field("file", "one file is needed")
        self.files += 1
        super().new_file(*args, **kwargs)

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        self.read += len(raw_data)
        if self.read > self.most:
            self.file.close()
            raise Invalid(f"A file may have {self.most} bytes.", code="too_large")
        super().receive_data_chunk(raw_data, start)


@contextmanager
def uploaded(request: Request, *, most: int) -> Iterator[UploadedFile[Any]]:
    """The one file of a form; larger ones are refused while they are read, and wait on disk, not in memory."""
    inner = request._request
    if (inner.content_type or "").lower() != MULTIPART:
        raise Invalid(f"Send {MULTIPART}.", code="unsupported_type")
    inner.upload_handlers = [_OneFile(inner, min(most, HARD_LIMIT))]
    files = [file for _, found in inner.FILES.lists() for file in found]
    try:
        if not inner.FILES.getlist("file"):
            raise Invalid.field("file", "one file is needed")
        yield files[0]
    finally:
        for file in files:
            file.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What `Content-Range` says of a request's bytes; `offset` None = it only asks how far the upload is."""

    offset: int | None
    length: int | None = None
    total: int | None = None


def part_of(request: Request) -> Part:
    """The place of the request's bytes in the whole; without the header they are the whole."""
    value = request.headers.get("Content-Range")
    if value is None:
        return Part(offset=0)
    found = _RANGE.match(value)
    if found is None:
        raise Invalid.field("Content-Range", "bytes first-last/total, or bytes */total")
    first, last, total = (None if group in {None, "*"} else int(group) for group in found.groups())
    if first is None or last is None:
        return Part(offset=None, total=total)
    if last < first or (total is not None and last >= total):
        raise Invalid.field("Content-Range", "first, last and total in this order")
    return Part(offset=first, length=last - first + 1, total=total)


class Bounded:
    """The body of a request as a file of so many bytes; more than it said, or fewer, is refused."""

    def __init__(self, body: IO[bytes], length: int | None) -> None:
        self._body, self._left = body, length

    def read(self, size: int) -> bytes:
        piece = self._body.read(size)
        if self._left is None:
            return piece
        self._left -= len(piece)
        if self._left < 0 or (not piece and self._left):
            raise Invalid("Content-Range and the bytes do not agree.", code="size_mismatch")
        return piece


def body_of(request: Request, part: Part) -> Any:  # noqa: ANN401  (only its `read` is used)
    return Bounded(cast("IO[bytes]", request._request), part.length)
