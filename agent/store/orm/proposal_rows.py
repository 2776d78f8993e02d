"""The columns of a proposal's row: what is written once, and the index that every change writes with the snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent.domain.canonical import sha256_hex
from agent.domain.proposal_json import fingerprint, from_snapshot, snapshot
from agent.domain.proposals import Proposal
from agent.domain.states import Decision, DeliveryStatus
from agent.domain.text import escaped
from agent.models import ActionProposal
from agent.models.fields import NAME, REF

INDEX_VERSION = 1
INDEX = (
    "proposal",
    "decision",
    "execution_status",
    "lease_expires_at_ms",
    "discovery_index_version",
    "delivery_status",
    "delivery_lease_expires_at_ms",
    "outcome_id_key",
    "pending_group_key",
)
COLUMNS = tuple(field.attname for field in ActionProposal._meta.concrete_fields if not field.primary_key)


def index_of(proposal: Proposal) -> Mapping[str, object]:
    """The snapshot, and everything of it that a query asks for."""
    execution, delivery, outcome = proposal.execution, proposal.delivery, proposal.outcome
    return {
        "proposal": snapshot(proposal),
        "decision": proposal.decision.value,
        "execution_status": execution and execution.status.value,
        "lease_expires_at_ms": execution.lease.expires_at if execution and execution.lease else None,
        "discovery_index_version": INDEX_VERSION,
        "delivery_status": delivery and delivery.status.value,
        "delivery_lease_expires_at_ms": None if delivery is None else delivery_due_at(proposal),
        "outcome_id_key": outcome and sha256_hex(outcome.id),
        "pending_group_key": proposal.asked.group if proposal.decision is Decision.PENDING else None,
    }


def delivery_due_at(proposal: Proposal) -> int | None:
    """When its admission may be tried: at once while pending, when the lease lapses while somebody admits it."""
    delivery = proposal.delivery
    if delivery is None:
        return None
    if delivery.status is DeliveryStatus.PENDING:
        return delivery.due_at
    return delivery.lease.expires_at if delivery.lease else None


def new_row(proposal: Proposal) -> Mapping[str, object]:
    """The row of a new proposal."""
    asked = proposal.asked
    return {
        **index_of(proposal),
        "id": row_key(asked.id),
        "scope_key": asked.scope.key,
        "create_fingerprint": fingerprint(asked),
        "version": 1,
        "proposal_expires_at_ms": asked.expires_at,
        "replacement_group_key": asked.group,
        "tenant_ref": None if asked.scope.tenant_ref is None else shown(asked.scope.tenant_ref, REF),
        "actor_ref": shown(asked.scope.actor_ref, REF),
        "thread_ref": shown(asked.scope.thread_id, REF),
        "run_ref": shown(asked.origin_run_id, REF),
        "tool_name": shown(asked.tool_name, NAME),
        "agent_name": _agent(asked.execution_context.get("agentName")),
        "approver": shown(asked.approver, REF),
        "created_at_ms": proposal.created_at,
    }


def _agent(name: str | None) -> str | None:
    return None if name is None else shown(name, NAME)


def shown(text: str, most: int) -> str:
    """A copy to show and to filter by: what no column can hold is escaped, what is too long is cut."""
    return escaped(text)[:most]


def row_key(proposal_id: str) -> str:
    """The primary key: one hash, whatever characters the id has."""
    return sha256_hex(proposal_id)


def cards_of(using: str, proposal_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What the cards of proposed calls show, in one statement."""
    if not proposal_ids:
        return {}
    found = ActionProposal.objects.using(using).filter(pk__in=[row_key(each) for each in proposal_ids])
    proposals = [from_snapshot(text) for text in found.values_list("proposal", flat=True)]
    return {proposal.id: proposal.card for proposal in proposals}
