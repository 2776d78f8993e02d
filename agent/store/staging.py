"""The built-in staging store: rows on the site's database, bytes in its Django storage.

The storage is the one named `agent_attachments` in STORAGES, else the default one. Stored names are random and have no
ending: where the storage is served, nothing can be guessed and nothing runs.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from tempfile import TemporaryFile
from typing import IO, Final

from django.core import signing
from django.core.files import File
from django.core.files.storage import InvalidStorageError, Storage, storages
from django.urls import reverse

from agent.conf import agent_settings
from agent.domain.actor import Actor, Owner
from agent.domain.ids import new_id
from agent.domain.media import HEAD, Attachment, NewFile, PendingUpload, type_of
from agent.domain.states import StagingStatus
from agent.errors import Conflict, Invalid, NotFound
from agent.models import StagedAttachment
from agent.models.attachment import StagedAttachmentQuerySet
from agent.setting_rules import AttachmentSettings

ALIAS: Final = "agent_attachments"
FOLDER: Final = "agent_attachments"
PIECE: Final = 64 * 1024
SALT: Final = "agent.attachment"


def _now() -> datetime:
    return datetime.now(UTC)


class DjangoStagingStore:
    """Stages files in Django storage; an upload in parts grows by one guarded update a part."""

    def __init__(
        self,
        *,
        storage: Storage | None = None,
        url_seconds: int | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self.storage = storage or attachment_storage()
        self.clock = clock or _now
        self._url_seconds = url_seconds or (agent_settings().attachments or AttachmentSettings()).url_seconds

    def stage(self, actor: Actor, file: NewFile) -> Attachment:
        """Keep the bytes, then their row: what has no row is nobody's."""
        now = self.clock()
        stored = self._save(file.content)
        row = StagedAttachment(
            actor_ref=actor.ref,
            tenant_ref=actor.tenant_ref,
            name=file.name,
            content_type=file.content_type,
            size=file.size,
            file=stored,
            status=StagingStatus.STAGED,
            created_at=now,
            staged_at=now,
        )
        try:
            row.save(force_insert=True)
        except Exception:
            self.storage.delete(stored)
            raise
        return self._shown(row)

    def resolve(self, actor: Actor, media_id: str) -> Attachment | None:
        row = self._of(actor).staged().filter(pk=media_id).first()
        return None if row is None else self._shown(row)

    def delete(self, actor: Actor, media_id: str) -> bool:
        row = self._of(actor).filter(pk=media_id).first()
        if row is None or not self._of(actor).filter(pk=media_id, file=row.file).delete()[0]:
            return False
        if row.file:
            self.storage.delete(row.file)
        return True

    def open(self, actor: Actor, media_id: str) -> IO[bytes] | None:
        row = self._of(actor).staged().filter(pk=media_id).first()
        return None if row is None or not self.storage.exists(row.file) else self.storage.open(row.file)

    def list(
        self, actor: Actor, *, staged_before: datetime | None = None, limit: int | None = None
    ) -> Sequence[Attachment]:
        mine = self._of(actor)
        rows = mine.staged() if staged_before is None else mine.older_than(staged_before)
        return [self._shown(row) for row in rows.order_by("-created_at", "-pk")[:limit]]

    def owners(self, *, staged_before: datetime) -> Sequence[Owner]:
        old = StagedAttachment.objects.older_than(staged_before).order_by("actor_ref", "tenant_ref")
        return [Owner(*pair) for pair in old.values_list("actor_ref", "tenant_ref").distinct()]

    # ---- uploads in parts ---------------------------------------------------------------------------------------

    def begin(self, actor: Actor, *, name: str, content_type: str, size: int) -> PendingUpload:
        row = StagedAttachment.objects.create(
            id=new_id(),
            actor_ref=actor.ref,
            tenant_ref=actor.tenant_ref,
            name=name,
            content_type=content_type,
            size=0,
            declared_size=size,
            file="",
            status=StagingStatus.UPLOADING,
            created_at=self.clock(),
        )
        return PendingUpload(media_id=row.pk, upload_url=reverse("agent:upload", args=[row.pk]))

    def append(self, actor: Actor, media_id: str, part: IO[bytes], *, offset: int) -> int:
        """Each part makes a new file of all that came so far: no storage needs to know how to append."""
        row = self._uploading(actor, media_id)
        if offset != row.size:
            raise Invalid(f"{row.size} bytes have come so far.", code="size_mismatch")
        with TemporaryFile() as whole:
            if row.file:
                with self.storage.open(row.file) as before:
                    _copy(before, whole, at_most=row.size)
            size = row.size + _copy(part, whole, at_most=(row.declared_size or 0) - row.size)
            if size == row.size:
                return size
            whole.seek(0)
            stored = self._save(whole)
        won = self._of(actor).grow(row, file=stored, size=size)
        if old := row.file if won else stored:
            self.storage.delete(old)
        return size if won else self._uploading(actor, media_id).size

    def received(self, actor: Actor, media_id: str) -> tuple[int, int]:
        row = self._uploading(actor, media_id)
        return row.size, row.declared_size or 0

    def complete(self, actor: Actor, media_id: str) -> Attachment:
        """A repeat answers the same file."""
        if (done := self.resolve(actor, media_id)) is not None:
            return done
        row = self._uploading(actor, media_id)
        if row.size != row.declared_size:
            raise Conflict(f"{row.size} of {row.declared_size} bytes have come.", code="bytes_missing")
        with self.storage.open(row.file) as file:
            kind = type_of(file.read(HEAD), row.name)
        if kind is None:
            raise Invalid("This kind of file is not taken.", code="unsupported_type")
        self._of(actor).finish(row, content_type=kind, at=self.clock())
        done = self.resolve(actor, media_id)
        if done is None:
            raise NotFound
        return done

    # -------------------------------------------------------------------------------------------------------------

    def allows(self, actor: Actor, media_id: str, token: str) -> bool:
        """Whether the token of a url was made for this actor and this file, and still holds."""
        try:
            named, ref, tenant, until = signing.loads(token, salt=SALT)
        except (signing.BadSignature, ValueError, TypeError):
            return False
        return (named, ref, tenant) == (media_id, actor.ref, actor.tenant_ref) and self.clock().timestamp() <= until

    def _of(self, actor: Actor) -> StagedAttachmentQuerySet:
        return StagedAttachment.objects.of(actor)

    def _uploading(self, actor: Actor, media_id: str) -> StagedAttachment:
        row = self._of(actor).uploading().filter(pk=media_id).first()
        if row is None:
            raise NotFound
        return row

    def _save(self, content: IO[bytes]) -> str:
        return self.storage.save(f"{FOLDER}/{secrets.token_hex(16)}", File(content))

    def _shown(self, row: StagedAttachment) -> Attachment:
        until = int(self.clock().timestamp()) + self._url_seconds
        token = signing.dumps([row.pk, row.actor_ref, row.tenant_ref, until], salt=SALT)
        return Attachment(
            media_id=row.pk,
            url=f"{reverse('agent:attachment_content', args=[row.pk])}?token={token}",
            content_type=row.content_type,
            name=row.name,
            size=row.size,
            staged_at=row.staged_at or row.created_at,
        )


def attachment_storage() -> Storage:
    """Where the built-in store keeps its bytes."""
    try:
        return storages[ALIAS]
    except InvalidStorageError:
        return storages["default"]


def _copy(source: IO[bytes], target: IO[bytes], *, at_most: int) -> int:
    """Copy in pieces; `Invalid` as soon as there is more than there may be."""
    copied = 0
    while piece := source.read(min(PIECE, at_most - copied + 1)):
        copied += len(piece)
        if copied > at_most:
            raise Invalid("There are more bytes than were said.", code="size_mismatch")
        target.write(piece)
    return copied
