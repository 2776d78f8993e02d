"""Staged files in memory: for tests, and what the contract of staging stores was written beside."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import BytesIO
from typing import IO

from agent.domain.actor import Actor, Owner
from agent.domain.ids import new_id
from agent.domain.media import HEAD, Attachment, NewFile, PendingUpload, type_of
from agent.errors import Conflict, Invalid, NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    owner: Owner
    name: str
    content_type: str
    content: bytes
    begun_at: datetime
    staged_at: datetime | None = None
    declared_size: int | None = None


class InMemoryStagingStore:
    """Keeps files as long as the process lives; its urls lead nowhere."""

    def __init__(self, *, clock: Callable[[], datetime] | None = None) -> None:
        self.clock = clock or (lambda: datetime.now(UTC))
        self._files: dict[str, _File] = {}

    def stage(self, actor: Actor, file: NewFile) -> Attachment:
        now = self.clock()
        kept = _File(
            owner=_owner(actor),
            name=file.name,
            content_type=file.content_type,
            content=file.content.read(),
            begun_at=now,
            staged_at=now,
        )
        return self._shown(self._keep(kept), kept)

    def resolve(self, actor: Actor, media_id: str) -> Attachment | None:
        file = self._of(actor, media_id)
        return None if file is None or file.staged_at is None else self._shown(media_id, file)

    def delete(self, actor: Actor, media_id: str) -> bool:
        return self._of(actor, media_id) is not None and self._files.pop(media_id, None) is not None

    def open(self, actor: Actor, media_id: str) -> IO[bytes] | None:
        file = self._of(actor, media_id)
        return None if file is None or file.staged_at is None else BytesIO(file.content)

    def list(
        self, actor: Actor, *, staged_before: datetime | None = None, limit: int | None = None
    ) -> Sequence[Attachment]:
        mine = [(key, file) for key, file in reversed(self._files.items()) if file.owner == _owner(actor)]
        found = [
            self._shown(key, file)
            for key, file in mine
            if (file.staged_at is not None if staged_before is None else _since(file) < staged_before)
        ]
        return found[:limit]

    def owners(self, *, staged_before: datetime) -> Sequence[Owner]:
        return builtins.list(dict.fromkeys(file.owner for file in self._files.values() if _since(file) < staged_before))

    def begin(self, actor: Actor, *, name: str, content_type: str, size: int) -> PendingUpload:
        begun = _File(
            owner=_owner(actor),
            name=name,
            content_type=content_type,
            content=b"",
            begun_at=self.clock(),
            declared_size=size,
        )
        media_id = self._keep(begun)
        return PendingUpload(media_id=media_id, upload_url=f"memory:{media_id}")

    def append(self, actor: Actor, media_id: str, part: IO[bytes], *, offset: int) -> int:
        file = self._uploading(actor, media_id)
        content = file.content + part.read((file.declared_size or 0) - len(file.content) + 1)
        if offset != len(file.content) or len(content) > (file.declared_size or 0):
            raise Invalid("The bytes do not fit behind the others.", code="size_mismatch")
        self._files[media_id] = replace(file, content=content)
        return len(content)

    def received(self, actor: Actor, media_id: str) -> tuple[int, int]:
        file = self._uploading(actor, media_id)
        return len(file.content), file.declared_size or 0

    def complete(self, actor: Actor, media_id: str) -> Attachment:
        if (done := self.resolve(actor, media_id)) is not None:
            return done
        file = self._uploading(actor, media_id)
        if len(file.content) != file.declared_size:
            raise Conflict("Some bytes have not come.", code="bytes_missing")
        kind = type_of(file.content[:HEAD], file.name)
        if kind is None:
            raise Invalid("This kind of file is not taken.", code="unsupported_type")
        whole = replace(file, content_type=kind, staged_at=self.clock())
        self._files[media_id] = whole
        return self._shown(media_id, whole)

    def _keep(self, file: _File) -> str:
        media_id = new_id()
        self._files[media_id] = file
        return media_id

    def _of(self, actor: Actor, media_id: str) -> _File | None:
        file = self._files.get(media_id)
        return file if file is not None and file.owner == _owner(actor) else None

    def _uploading(self, actor: Actor, media_id: str) -> _File:
        file = self._of(actor, media_id)
        if file is None or file.staged_at is not None:
            raise NotFound
        return file

    def _shown(self, media_id: str, file: _File) -> Attachment:
        return Attachment(
            media_id=media_id,
            url=f"memory:{media_id}",
            content_type=file.content_type,
            name=file.name,
            size=len(file.content),
            staged_at=_since(file),
        )


def _since(file: _File) -> datetime:
    return file.staged_at or file.begun_at


def _owner(actor: Actor) -> Owner:
    return Owner(actor.ref, actor.tenant_ref)
