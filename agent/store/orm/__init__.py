"""The promise of the store, kept by the models on SQLite, PostgreSQL, MySQL and MariaDB. One file a capability."""

from __future__ import annotations

from agent.store.base import CAPABILITIES
from agent.store.orm.approvals import OrmApprovals
from agent.store.orm.attachments import OrmAttachmentReferences
from agent.store.orm.confirm_tokens import OrmConfirmTokens
from agent.store.orm.erasure import OrmErasure
from agent.store.orm.frames import OrmFrames
from agent.store.orm.idempotency import OrmIdempotency
from agent.store.orm.journal import OrmJournal
from agent.store.orm.ledger import OrmLedger
from agent.store.orm.memories import OrmMemories
from agent.store.orm.messages import OrmMessages
from agent.store.orm.proposal_work import OrmProposalWork
from agent.store.orm.queue import OrmQueue
from agent.store.orm.runs import OrmRuns
from agent.store.orm.summaries import OrmSummaries
from agent.store.orm.thread_copies import OrmThreadCopies
from agent.store.orm.threads import OrmThreads
from agent.store.orm.tool_calls import OrmToolCalls
from agent.store.orm.turn_reader import OrmTurnReader


class OrmStore(
    OrmThreads,
    OrmThreadCopies,
    OrmTurnReader,
    OrmSummaries,
    OrmMessages,
    OrmToolCalls,
    OrmApprovals,
    OrmLedger,
    OrmRuns,
    OrmJournal,
    OrmQueue,
    OrmFrames,
    OrmIdempotency,
    OrmConfirmTokens,
    OrmMemories,
    OrmProposalWork,
    OrmErasure,
    OrmAttachmentReferences,
):
    """An `AgentStore` on the site's database."""

    capabilities = frozenset(CAPABILITIES)
    personal_agent = "agent.store.orm.personal_agent.OrmPersonalAgent"
    personal_agent_connections = "agent.store.orm.personal_connections.OrmPersonalConnections"


__all__ = ["OrmStore"]
