"""The record of a proposal as JSON: its canonical snapshot, and what of it goes over the wire."""

from __future__ import annotations

import json
from typing import Any

from agent.domain.canonical import canonical_json
from agent.domain.commands import UNSET
from agent.domain.proposals import (
    Audit,
    Delivery,
    Execution,
    Lease,
    NewProposal,
    Outcome,
    Proposal,
    ProposalScope,
)
from agent.domain.states import Decision, DeliveryStatus, ExecutionStatus

Fields = dict[str, Any]

_HIDDEN = ("preparationInput", "executionContext", "idempotencyKey", "replacementKey")


def fingerprint(asked: NewProposal) -> str:
    """Canonical JSON of the creation: the same text for the same creation, whatever the order of its keys."""
    return canonical_json(creation_fields(asked))


def snapshot(proposal: Proposal) -> str:
    """Canonical JSON of the whole record."""
    return canonical_json(record_fields(proposal))


def from_snapshot(text: str) -> Proposal:
    """The record of a snapshot; whoever changes it changes nothing that is stored."""
    given = json.loads(text)
    return Proposal(
        asked=_creation(given),
        created_at=given["createdAt"],
        decision=Decision(given["decision"]),
        audit=_audit(given.get("audit")),
        execution=_execution(given.get("execution")),
        outcome=_outcome(given.get("outcome")),
        delivery=_delivery(given.get("delivery")),
        superseded_by=given.get("supersededBy"),
    )


def wire(proposal: Proposal) -> Fields:
    """What clients are shown: without raw input, context, keys, leases and tokens; with the digest of the card."""
    shown = {name: value for name, value in record_fields(proposal).items() if name not in _HIDDEN}
    for part in ("execution", "delivery"):
        if part in shown:
            shown[part] = {name: value for name, value in shown[part].items() if name not in {"lease", "dueAt"}}
    return {**shown, "digest": proposal.digest}


def creation_fields(asked: NewProposal) -> Fields:
    return _present(
        {
            "id": asked.id,
            "scope": {
                "tenantRef": asked.scope.tenant_ref,
                "actorRef": asked.scope.actor_ref,
                "threadId": asked.scope.thread_id,
            },
            "originRunId": asked.origin_run_id,
            "originMessageId": asked.origin_message_id,
            "originToolCallId": asked.origin_tool_call_id,
            "toolName": asked.tool_name,
            "input": asked.input,
            "preparationInput": asked.preparation_input,
            "executionContext": asked.execution_context,
            "confirmation": asked.confirmation,
            "approver": asked.approver,
            "fourEyes": asked.four_eyes,
            "onLost": asked.on_lost,
            "expiresAt": asked.expires_at,
            "idempotencyKey": asked.idempotency_key,
            "replacementKey": UNSET if asked.replacement_key is None else asked.replacement_key,
        }
    )


def record_fields(proposal: Proposal) -> Fields:
    return {
        **creation_fields(proposal.asked),
        "createdAt": proposal.created_at,
        "decision": proposal.decision.value,
        **_given(
            audit=proposal.audit and _audit_fields(proposal.audit),
            execution=proposal.execution and _execution_fields(proposal.execution),
            outcome=proposal.outcome and _outcome_fields(proposal.outcome),
            delivery=proposal.delivery and _delivery_fields(proposal.delivery),
            supersededBy=proposal.superseded_by,
        ),
    }


def _present(fields: Fields) -> Fields:
    return {name: value for name, value in fields.items() if value is not UNSET}


def _given(**fields: object) -> Fields:
    return {name: value for name, value in fields.items() if value is not None}


def _creation(given: Fields) -> NewProposal:
    scope = given["scope"]
    return NewProposal(
        id=given["id"],
        scope=ProposalScope(tenant_ref=scope["tenantRef"], actor_ref=scope["actorRef"], thread_id=scope["threadId"]),
        origin_run_id=given["originRunId"],
        origin_message_id=given["originMessageId"],
        origin_tool_call_id=given["originToolCallId"],
        tool_name=given["toolName"],
        input=given["input"],
        execution_context=given["executionContext"],
        confirmation=given["confirmation"],
        approver=given["approver"],
        four_eyes=given["fourEyes"],
        on_lost=given["onLost"],
        expires_at=given["expiresAt"],
        idempotency_key=given["idempotencyKey"],
        preparation_input=given.get("preparationInput", UNSET),
        replacement_key=given.get("replacementKey"),
    )


def _audit_fields(audit: Audit) -> Fields:
    return {
        "actorRef": audit.actor_ref,
        "via": audit.via,
        "at": audit.at,
        **_given(reason=audit.reason, remember=audit.remember or None),
    }


def _audit(given: Fields | None) -> Audit | None:
    if given is None:
        return None
    return Audit(
        actor_ref=given["actorRef"],
        via=given["via"],
        at=given["at"],
        reason=given.get("reason"),
        remember=given.get("remember", False),
    )


def _lease_fields(lease: Lease | None) -> Fields | None:
    if lease is None:
        return None
    return {"token": lease.token, "expiresAt": lease.expires_at, **_given(workerId=lease.worker_id)}


def _lease(given: Fields | None) -> Lease | None:
    if given is None:
        return None
    return Lease(token=given["token"], expires_at=given["expiresAt"], worker_id=given.get("workerId"))


def _execution_fields(execution: Execution) -> Fields:
    told = [_audit_fields(each) for each in execution.settled_by]
    return {
        "status": execution.status.value,
        "generation": execution.generation,
        **_present({"result": execution.result}),
        **_given(lease=_lease_fields(execution.lease), error=execution.error, settledBy=told or None),
    }


def _execution(given: Fields | None) -> Execution | None:
    if given is None:
        return None
    told = (_audit(each) for each in given.get("settledBy", ()))
    return Execution(
        status=ExecutionStatus(given["status"]),
        generation=given["generation"],
        lease=_lease(given.get("lease")),
        result=given.get("result", UNSET),
        error=given.get("error"),
        settled_by=tuple(each for each in told if each is not None),
    )


def _outcome_fields(outcome: Outcome) -> Fields:
    return {
        "id": outcome.id,
        "status": outcome.status,
        "at": outcome.at,
        **_present({"result": outcome.result}),
        **_given(error=outcome.error, reason=outcome.reason, text=outcome.text, ui=outcome.ui or None),
    }


def _outcome(given: Fields | None) -> Outcome | None:
    if given is None:
        return None
    return Outcome(
        id=given["id"],
        status=given["status"],
        at=given["at"],
        result=given.get("result", UNSET),
        error=given.get("error"),
        reason=given.get("reason"),
        text=given.get("text"),
        ui=given.get("ui"),
    )


def _delivery_fields(delivery: Delivery) -> Fields:
    return {
        "status": delivery.status.value,
        "generation": delivery.generation,
        **_given(dueAt=delivery.due_at, lease=_lease_fields(delivery.lease), messageId=delivery.message_id),
    }


def _delivery(given: Fields | None) -> Delivery | None:
    if given is None:
        return None
    return Delivery(
        status=DeliveryStatus(given["status"]),
        generation=given["generation"],
        due_at=given.get("dueAt"),
        lease=_lease(given.get("lease")),
        message_id=given.get("messageId"),
    )
