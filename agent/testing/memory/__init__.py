"""The promise of the store kept in memory: for tests, and as its executable specification. One file a capability."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property

from agent.store.base import CAPABILITIES
from agent.testing.memory.approvals import Approvals
from agent.testing.memory.attachments import AttachmentReferences
from agent.testing.memory.confirm_tokens import ConfirmTokens
from agent.testing.memory.creation import Creation
from agent.testing.memory.erasure import Erasure
from agent.testing.memory.forks import Forks
from agent.testing.memory.frames import Frames
from agent.testing.memory.idempotency import Idempotency
from agent.testing.memory.ledger import Ledger
from agent.testing.memory.memories import Memories
from agent.testing.memory.personal_agent import InMemoryPersonalAgent
from agent.testing.memory.personal_connections import InMemoryPersonalConnections
from agent.testing.memory.proposals import Proposals
from agent.testing.memory.queue import Queue
from agent.testing.memory.runs import Runs
from agent.testing.memory.summaries import Summaries


class InMemoryStore(
    Proposals,
    Creation,
    Forks,
    Approvals,
    Ledger,
    Runs,
    Queue,
    Frames,
    Summaries,
    Idempotency,
    ConfirmTokens,
    Memories,
    Erasure,
    AttachmentReferences,
):
    """An `AgentStore` of one process without infrastructure; its units of work are serial, and gone with it."""

    capabilities = frozenset(CAPABILITIES)

    @cached_property
    def personal_agent(self) -> InMemoryPersonalAgent:
        """A companion of this store alone: in its units of work, with its clock and ids as they are set by then."""
        return InMemoryPersonalAgent(clock=self._now, new_id=self._id, beside=self)

    @cached_property
    def personal_agent_connections(self) -> InMemoryPersonalConnections:
        return InMemoryPersonalConnections(clock=self._now, new_id=self._id, beside=self)

    def _now(self) -> datetime:
        return self.clock()

    def _id(self) -> str:
        return self.new_id()


__all__ = ["InMemoryPersonalAgent", "InMemoryPersonalConnections", "InMemoryStore"]
