"""The published contracts: lists of cases that every implementation of a port must pass. No test framework needed.

The contracts of the store are here by name; `STORE_CONTRACTS` are all of them, by the capability they are about. A
store runs `cases_for(its capabilities)`; `PERSONAL_AGENT_...` are those of its companions.
"""

from collections.abc import Collection, Iterator

from agent.testing.contracts import (
    decisions,
    forks,
    journal,
    leases,
    personal_messages,
    proposal_refusals,
    texts,
    thread_reads,
)
from agent.testing.contracts.base import Case, ContractMismatch
from agent.testing.contracts.confirm_tokens import CONFIRM_TOKEN_CONTRACT
from agent.testing.contracts.erasure import ERASURE_CONTRACT
from agent.testing.contracts.frames import FRAME_CONTRACT
from agent.testing.contracts.holders import HOLDER_CONTRACT
from agent.testing.contracts.idempotency import IDEMPOTENCY_CONTRACT
from agent.testing.contracts.ledger import LEDGER_CONTRACT
from agent.testing.contracts.memories import MEMORY_CONTRACT
from agent.testing.contracts.personal_agent import PERSONAL_AGENT_STORE_CONTRACT
from agent.testing.contracts.personal_connections import PERSONAL_AGENT_CONNECTION_STORE_CONTRACT
from agent.testing.contracts.personal_subject import CompanionSubject, ConnectionCase, PersonalAgentCase
from agent.testing.contracts.proposal_outcomes import (
    PROPOSAL_OUTCOME_CONTRACT,
    PROPOSED_CALL_CONTRACT,
)
from agent.testing.contracts.proposal_work import PROPOSAL_REPLACEMENT_CONTRACT, PROPOSAL_WORKER_CONTRACT
from agent.testing.contracts.proposals import PROPOSAL_CONTRACT
from agent.testing.contracts.queue import QUEUE_CONTRACT
from agent.testing.contracts.reads import BLANK_HISTORY_CONTRACT, BOUNDED_READ_CONTRACT
from agent.testing.contracts.round_trip import ROUND_TRIP_CONTRACT
from agent.testing.contracts.rows import EVERY_MESSAGE_FIELD
from agent.testing.contracts.runs import RUN_CONTRACT
from agent.testing.contracts.sinks import SINK_CONTRACT, SinkCase, SinkSubject
from agent.testing.contracts.staging import (
    ATTACHMENT_REFERENCE_CONTRACT,
    STAGING_CONTRACT,
    StagingCase,
    StagingSubject,
)
from agent.testing.contracts.store import SettableClock, StoreCase, StoreSubject
from agent.testing.contracts.summaries import SUMMARY_CONTRACT
from agent.testing.contracts.threads import THREAD_CONTRACT
from agent.testing.contracts.tool_calls import TOOL_CALL_CONTRACT
from agent.testing.contracts.unit import UNIT_OF_WORK_CONTRACT

CASES_ADDED_BY = (
    decisions,
    forks,
    journal,
    leases,
    personal_messages,
    proposal_refusals,
    texts,
    thread_reads,
)  # to the lists above, when imported

_PROPOSALS = frozenset({"proposals", "proposal_replacement", "proposal_worker", "proposal_outcomes"})

STORE_CONTRACTS: dict[str, list[StoreCase]] = {
    "unit of work": UNIT_OF_WORK_CONTRACT,
    "round trip": ROUND_TRIP_CONTRACT,
    "threads": THREAD_CONTRACT,
    "holders": HOLDER_CONTRACT,
    "tool_calls": TOOL_CALL_CONTRACT,
    "ledger": LEDGER_CONTRACT,
    "runs": RUN_CONTRACT,
    "queue": QUEUE_CONTRACT,
    "frames": FRAME_CONTRACT,
    "idempotency": IDEMPOTENCY_CONTRACT,
    "summaries": SUMMARY_CONTRACT,
    "proposals": PROPOSAL_CONTRACT,
    "proposal_replacement": PROPOSAL_REPLACEMENT_CONTRACT,
    "proposal_worker": PROPOSAL_WORKER_CONTRACT,
    "proposal_outcomes": PROPOSAL_OUTCOME_CONTRACT,
    "proposed calls": PROPOSED_CALL_CONTRACT,
    "confirm_tokens": CONFIRM_TOKEN_CONTRACT,
    "memory": MEMORY_CONTRACT,
    "erasure": ERASURE_CONTRACT,
    "attachment_references": ATTACHMENT_REFERENCE_CONTRACT,
    "blank history": BLANK_HISTORY_CONTRACT,
    "bounded reads": BOUNDED_READ_CONTRACT,
}
for _cases in STORE_CONTRACTS.values():
    _cases.sort(key=lambda case: case.name)
PERSONAL_AGENT_STORE_CONTRACT.sort(key=lambda case: case.name)

# What the cases of a contract use as a whole, beside what every store has.
CONTRACT_NEEDS: dict[str, frozenset[str]] = {
    "runs": frozenset({"runs", "journal"}),
    "queue": frozenset({"queue"}),
    "frames": frozenset({"frames"}),
    "idempotency": frozenset({"idempotency"}),
    "summaries": frozenset({"summaries"}),
    "confirm_tokens": frozenset({"confirm_tokens"}),
    "proposals": _PROPOSALS,
    "proposal_replacement": _PROPOSALS,
    "proposal_worker": _PROPOSALS,
    "proposal_outcomes": _PROPOSALS | {"queue"},
    "memory": frozenset({"memory"}),
    "attachment_references": frozenset({"attachment_references", "queue"}),
    "erasure": _PROPOSALS | {"erasure", "runs", "journal", "frames", "idempotency", "memory"},
}


def cases_for(capabilities: Collection[str]) -> Iterator[tuple[str, StoreCase]]:
    """The cases that a store with these capabilities has to pass, each with the name of its contract."""
    for name, cases in STORE_CONTRACTS.items():
        own = CONTRACT_NEEDS.get(name, frozenset())
        yield from ((name, case) for case in cases if (own | case.needs).issubset(capabilities))


__all__ = [
    "ATTACHMENT_REFERENCE_CONTRACT",
    "BLANK_HISTORY_CONTRACT",
    "BOUNDED_READ_CONTRACT",
    "CONFIRM_TOKEN_CONTRACT",
    "CONTRACT_NEEDS",
    "ERASURE_CONTRACT",
    "EVERY_MESSAGE_FIELD",
    "FRAME_CONTRACT",
    "HOLDER_CONTRACT",
    "IDEMPOTENCY_CONTRACT",
    "LEDGER_CONTRACT",
    "MEMORY_CONTRACT",
    "PERSONAL_AGENT_CONNECTION_STORE_CONTRACT",
    "PERSONAL_AGENT_STORE_CONTRACT",
    "PROPOSAL_CONTRACT",
    "PROPOSAL_OUTCOME_CONTRACT",
    "PROPOSAL_REPLACEMENT_CONTRACT",
    "PROPOSAL_WORKER_CONTRACT",
    "PROPOSED_CALL_CONTRACT",
    "QUEUE_CONTRACT",
    "ROUND_TRIP_CONTRACT",
    "RUN_CONTRACT",
    "SINK_CONTRACT",
    "STAGING_CONTRACT",
    "STORE_CONTRACTS",
    "SUMMARY_CONTRACT",
    "THREAD_CONTRACT",
    "TOOL_CALL_CONTRACT",
    "UNIT_OF_WORK_CONTRACT",
    "Case",
    "CompanionSubject",
    "ConnectionCase",
    "ContractMismatch",
    "PersonalAgentCase",
    "SettableClock",
    "SinkCase",
    "SinkSubject",
    "StagingCase",
    "StagingSubject",
    "StoreCase",
    "StoreSubject",
    "cases_for",
]
