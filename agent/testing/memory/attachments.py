"""Which files messages carry, in memory: capability `attachment_references`."""

from __future__ import annotations

from collections.abc import Sequence

from agent.domain.media import carried_by
from agent.testing.memory.state import State
from agent.testing.memory.unit import unit


class AttachmentReferences(State):
    @unit
    def referenced_media_ids(self, actor_ref: str, ids: Sequence[str]) -> list[str]:
        threads = self.threads_of_actor.keys(actor_ref)
        told = [self.messages[key].attachments for one in threads for key in self.messages_of_thread.keys(one)]
        waiting = [self.queue[key].attachments for one in threads for key in self.queue_of_thread.keys(one)]
        carried = set(carried_by([*told, *waiting]))
        return [media_id for media_id in dict.fromkeys(ids) if media_id in carried]
