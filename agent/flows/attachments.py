"""Files of an actor: staging, sending by id, urls made anew at every reading, and what may be swept (spec 11 §9)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import IO, Any, cast

from agent.conf import agent_settings
from agent.domain.actor import Actor, Owner
from agent.domain.media import HEAD, Attachment, NewFile, PendingUpload, safe_name, type_of
from agent.domain.snapshots import JsonList
from agent.errors import Conflict, Invalid, NotAllowed, NotFound, NotSupported
from agent.setting_rules import AttachmentSettings
from agent.spi import AttachmentStagingStore, ListsAttachments, OpensAttachments, TakesUploads
from agent.store import get_store

OFF = "This installation takes no attachments."


def settings() -> AttachmentSettings:
    """What is taken; `NotSupported` where nothing is."""
    taken = agent_settings().attachments
    if taken is None:
        raise NotSupported(OFF)
    return taken


def offered() -> dict[str, Any] | None:
    """What a client may upload; None = nothing."""
    taken = agent_settings().attachments
    if taken is None:
        return None
    resumable = hasattr(agent_settings().staging_store, "begin")
    return {"maxBytes": taken.max_bytes, "types": list(taken.types), "resumable": resumable}


def stage(actor: Actor, content: IO[bytes], *, name: str, size: int) -> Attachment:
    """Keep a file whose bytes, whatever it calls itself, are of a kind that is taken."""
    taken, kept = settings(), safe_name(name)
    check_size(size)
    kind = type_of(content.read(HEAD), kept)
    content.seek(0)
    if kind not in taken.types:
        raise _unsupported(taken)
    return staging().stage(actor, NewFile(name=kept, content_type=kind or "", size=size, content=content))


def check_size(size: int) -> None:
    """Raise for nothing, and for more than is taken."""
    taken = settings()
    if size < 1:
        raise Invalid.field("file", "is empty")
    if size > taken.max_bytes:
        raise Invalid(f"A file may have {taken.max_bytes} bytes.", code="too_large")


def newest(actor: Actor, limit: int) -> Sequence[Attachment]:
    """The actor's own files, the newest first."""
    return _lists("list").list(actor, limit=limit)


def begin(actor: Actor, *, name: str, content_type: str, size: int) -> PendingUpload:
    """Begin an upload in parts; what is said of it is checked now, and its bytes when they are all there."""
    store, taken = _uploads("begin"), settings()
    check_size(size)
    if content_type not in taken.types:
        raise _unsupported(taken)
    return store.begin(actor, name=safe_name(name), content_type=content_type, size=size)


def receive(actor: Actor, media_id: str, part: IO[bytes], *, offset: int, total: int | None) -> int:
    """Add bytes to an upload; how many there are."""
    store = _uploads("append")
    _check_total(store, actor, media_id, total)
    return store.append(actor, media_id, part, offset=offset)


def received(actor: Actor, media_id: str, *, total: int | None) -> int:
    """How many bytes of an upload have come: where a broken one goes on."""
    store = _uploads("append")
    return _check_total(store, actor, media_id, total)


def complete(actor: Actor, media_id: str) -> Attachment:
    """Make the upload a file; one whose bytes are of a kind that is not taken is forgotten."""
    store, taken = _uploads("complete"), settings()
    try:
        done = store.complete(actor, media_id)
    except Invalid:
        staging().delete(actor, media_id)
        raise
    if done.content_type not in taken.types:
        staging().delete(actor, media_id)
        raise _unsupported(taken)
    return done


def discard(actor: Actor, media_id: str) -> None:
    """Forget a file that no message carries, or an unfinished upload."""
    store = staging()
    if _referenced(actor, [media_id]):
        raise Conflict("A message carries this file.")
    if not store.delete(actor, media_id):
        raise NotFound


def content(actor: Actor, media_id: str, token: str) -> tuple[Attachment, IO[bytes]]:
    """A file of this actor and its bytes; for a url that was made for somebody else, or is over, there is none."""
    store = staging()
    allows = getattr(store, "allows", None)
    if allows is None or not allows(actor, media_id, token):
        raise NotFound
    file, opened = store.resolve(actor, media_id), cast("OpensAttachments", _able("open")).open(actor, media_id)
    if file is None or opened is None:
        raise NotFound
    return file, opened


def referred(actor: Actor, media_ids: Iterable[str]) -> JsonList | None:
    """What a message will carry; a file that is not this actor's is refused as one that never was."""
    wanted = list(dict.fromkeys(media_ids))
    if not wanted:
        return None
    found = [staging().resolve(actor, media_id) for media_id in wanted]
    if any(one is None for one in found):
        raise NotAllowed("This file cannot be sent.", code="attachment_forbidden")
    return [one.to_json() for one in found if one is not None]


def minted(actor: Actor, carried: JsonList | None, *, keep: bool = False) -> JsonList | None:
    """The files of a message with urls made now; a file that is gone has none, or with `keep` the one it had."""
    if not carried:
        return carried
    store = cast("AttachmentStagingStore | None", agent_settings().staging_store)
    shown: JsonList = []
    for item in carried:
        found = store.resolve(actor, item["mediaId"]) if store is not None else None
        gone = item if keep else {**item, "url": None}
        shown.append(found.to_json() if found is not None else gone)
    return shown


def collectable_attachments(actor: Actor, *, older_than: datetime, limit: int | None = None) -> list[Attachment]:
    """Old files of the actor that no message carries. It deletes nothing; `NotSupported` where that is not known."""
    if older_than.tzinfo is None:
        raise Invalid.field("older_than", "an instant with its time zone")
    listed = _lists("list").list(actor, staged_before=older_than)
    # The age is looked at again: a store that passes over the hint harms nobody.
    old = [one for one in listed if one.staged_at is not None and one.staged_at < older_than]
    carried = set(_referenced(actor, [one.media_id for one in old]))
    return [one for one in old if one.media_id not in carried][:limit]


def sweep_one(actor: Actor, media_id: str) -> bool:
    """Forget a collectable file, unless a message has come to carry it meanwhile; whether it is gone."""
    try:
        discard(actor, media_id)
    except (Conflict, NotFound):
        return False
    return True


def owners_of_old_files(older_than: datetime) -> Sequence[Owner]:
    """Whose files are older than that."""
    return _lists("owners").owners(staged_before=older_than)


def staging() -> AttachmentStagingStore:
    """The staging store of this installation."""
    settings()
    return cast("AttachmentStagingStore", agent_settings().staging_store)


def _lists(method: str) -> ListsAttachments:
    return cast("ListsAttachments", _able(method))


def _uploads(method: str) -> TakesUploads:
    return cast("TakesUploads", _able(method))


def _able(method: str) -> object:
    """The store, if it can do this."""
    store = staging()
    if not hasattr(store, method):
        raise NotSupported
    return store


def _referenced(actor: Actor, media_ids: Sequence[str]) -> list[str]:
    store = get_store()
    if "attachment_references" not in store.capabilities:
        raise NotSupported
    return store.referenced_media_ids(actor.ref, media_ids)


def _check_total(store: TakesUploads, actor: Actor, media_id: str, total: int | None) -> int:
    come, said = store.received(actor, media_id)
    if total is not None and total != said:
        raise Invalid(f"The upload was begun with {said} bytes.", code="size_mismatch")
    return come


def _unsupported(taken: AttachmentSettings) -> Invalid:
    return Invalid(f"Files of these kinds are taken: {', '.join(taken.types)}.", code="unsupported_type")
