"""How a thread begins in memory: by itself, or with its first message."""

from __future__ import annotations

from dataclasses import replace

from agent.domain.actor import Actor
from agent.domain.commands import AppendMessage
from agent.domain.snapshots import ThreadSummary
from agent.errors import Conflict
from agent.testing.memory.messages import Messages
from agent.testing.memory.state import ThreadRow
from agent.testing.memory.threads import NEW_CHAT, thread_title
from agent.testing.memory.unit import unit
from agent.testing.memory.values import ID, NAME, REF, exact


class Creation(Messages):
    @unit
    def create_thread(
        self,
        *,
        actor: Actor,
        title: str | None = None,
        transient: bool = False,
        agent_name: str | None = None,
        persona: str | None = None,
        external_id: str | None = None,
        active_run_id: str | None = None,
        first_message: AppendMessage | None = None,
    ) -> ThreadSummary:
        now = self.clock()
        row = ThreadRow(
            id=self.new_id(),
            external_id=exact("external_id", external_id, REF),
            actor_ref=actor.ref,
            tenant_ref=actor.tenant_ref,
            title=thread_title(NEW_CHAT if title is None else title),
            transient=transient,
            active_run_id=exact("active_run_id", active_run_id, ID),
            default_agent=exact("default_agent", agent_name, NAME),
            model=None,
            persona=exact("persona", persona, NAME),
            queue_pause=None,
            last_seq=0,
            created_at=now,
            updated_at=now,
            deleted_at=None,
        )
        known = None if external_id is None else self.thread_of_external_id.first((actor.ref, external_id))
        if known is not None:
            return self._known_thread(self.threads[known], actor)
        self.threads.put(row.id, row)
        if first_message is not None:
            self.append_message(replace(first_message, thread_id=row.id))
        return self.summary(self.threads[row.id])

    def _known_thread(self, row: ThreadRow, actor: Actor) -> ThreadSummary:
        if row.deleted_at is not None or row.tenant_ref != actor.tenant_ref:
            raise Conflict("A deleted conversation, or one of another tenant, has this external id.")
        return self.summary(row)
