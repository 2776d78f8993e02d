"""Capability `attachment_references`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from agent.domain.media import carried_by
from agent.models import Message, QueuedMessage
from agent.store.orm.unit import OrmUnit


class OrmAttachmentReferences(OrmUnit):
    def referenced_media_ids(self, actor_ref: str, ids: Sequence[str]) -> list[str]:
        wanted = dict.fromkeys(ids)
        if not wanted:
            return []
        told, waiting = (
            model.objects.using(self.db)
            .filter(thread__actor_ref=actor_ref, attachments__isnull=False)
            .values_list("attachments", flat=True)
            .iterator()
            for model in (Message, QueuedMessage)
        )
        carried = set(carried_by(chain(told, waiting)))
        return [media_id for media_id in wanted if media_id in carried]
