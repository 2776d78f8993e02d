"""The files of a conversation as a model is given them: read at each call, and never journaled (spec 03 §5)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from agent.conf import agent_settings
from agent.domain.actor import Actor
from agent.domain.model_calls import ShownAttachment, ShownMessage
from agent.spi import AttachmentStagingStore, ModelProvider, OpensAttachments
from agent.store import in_store

GONE = "[The file {name} is no longer there.]"
UNREADABLE = "[The file {name} ({kind}) was sent, and you cannot read files.]"

Messages = tuple[ShownMessage, ...]


async def with_files(actor: Actor, provider: ModelProvider, messages: Messages) -> Messages:
    """The messages with their files; a file that is gone, or a provider that takes none, is told in a sentence."""
    if not any(message.attachments for message in messages):
        return messages
    if not getattr(provider, "supports_files", True):
        return tuple(_told(message, message.attachments, UNREADABLE) for message in messages)
    return await in_store(_read, actor, messages)


def _read(actor: Actor, messages: Messages) -> Messages:
    known: dict[str | None, ShownAttachment | None] = {}
    for attachment in (one for message in messages for one in message.attachments):
        if attachment.media_id not in known:
            known[attachment.media_id] = _now(actor, attachment)
    return tuple(_with_known(message, known) for message in messages)


def _with_known(message: ShownMessage, known: dict[str | None, ShownAttachment | None]) -> ShownMessage:
    found = tuple(one for each in message.attachments if (one := known[each.media_id]) is not None)
    gone = [each for each in message.attachments if known[each.media_id] is None]
    return _told(message, gone, GONE, found=found) if message.attachments else message


def _told(
    message: ShownMessage,
    unread: Iterable[ShownAttachment],
    sentence: str,
    *,
    found: tuple[ShownAttachment, ...] = (),
) -> ShownMessage:
    notes = [sentence.format(name=each.name, kind=each.content_type) for each in unread]
    content = "\n\n".join(part for part in (message.content, *notes) if part)
    return replace(message, content=content, attachments=found)


def _now(actor: Actor, attachment: ShownAttachment) -> ShownAttachment | None:
    """The file with a url made now, and its bytes where the store gives them; None when it is not the actor's."""
    store = cast("AttachmentStagingStore | None", agent_settings().staging_store)
    found = store.resolve(actor, attachment.media_id) if store is not None and attachment.media_id else None
    if found is None:
        return None
    shown = replace(attachment, url=found.url, content_type=found.content_type, name=found.name)
    if not hasattr(store, "open"):
        return shown
    opened = cast("OpensAttachments", store).open(actor, found.media_id)
    if opened is None:
        return None
    with opened:
        return replace(shown, data=opened.read())
