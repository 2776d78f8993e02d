"""How a call ended, from what its journal steps hold: the result on its message, and the frames of its card."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.domain import frames
from agent.domain.model_calls import Frame

Payload = Mapping[str, Any]

CARD_ENDS = frozenset({"approved", "rejected", "expired"})
INTAKE = "intake:ask"  # the step that holds the call of questions before the first answer
PARTS = ("error", "denied", "expired")


def result_of(call: Payload, payload: Payload) -> dict[str, Any]:
    """The result of a call from a payload that settles it."""
    result: dict[str, Any] = {"id": call["id"], "name": call["name"], "output": payload.get("output")}
    return result | {name: payload[name] for name in PARTS if payload.get(name)}


def denial(reason: str) -> dict[str, Any]:
    """What a result says of a call that its preflight did not let pass."""
    return {"output": {"denied": True, "reason": reason}, "denied": True}


def receipt(proposal_id: str | None) -> dict[str, Any]:
    """The result of a call that became a proposal: nothing is done yet."""
    return {"proposalId": proposal_id, "status": "pending", "executed": False}


def settled_by(persisted: Payload) -> Payload | None:
    """The outcome of a call that was settled as it was recorded; None when it is to run, or waits."""
    match persisted["branch"]:
        case "refused":
            return {"error": persisted["failure"]}
        case "denied":
            return denial(persisted["failure"])
        case "completed":
            return persisted
        case "proposed":
            return {"output": receipt(persisted["proposalId"])}
        case _:
            return None


def outcome_of(persisted: Payload | None, awaited: Payload | None, ran: Payload | None) -> Payload | None:
    """What settled a call, from its journal steps; None while nothing has."""
    if persisted is not None and (settled := settled_by(persisted)) is not None:
        return settled
    return awaited if awaited is not None and "output" in awaited else ran


def card_frames(call_id: str, persisted: Payload | None, awaited: Payload | None) -> list[Frame]:
    """The frames of a call's card: that somebody is asked, and what was decided."""
    told: list[Frame] = []
    if persisted is not None and persisted["branch"] in {"approval", "proposed"}:
        told.append(frames.approval_requested(call_id, persisted))
    if persisted is not None and persisted["branch"] == "ask":
        told.append(frames.elicitation(call_id, persisted))
    if persisted is not None and persisted.get("remembered"):
        told.append(frames.approval_settled(call_id, remembered(persisted)))
    if awaited is not None and awaited["status"] in CARD_ENDS:
        told.append(frames.approval_settled(call_id, awaited))
    return told


def put_first(call: Payload) -> Payload:
    """What a step of its own would have recorded of the questions that an agent puts before its first answer."""
    return {"branch": "ask", **call["input"]}


def remembered(persisted: Payload) -> Payload:
    """The decision of a call that an earlier approval lets pass."""
    return {"status": "approved", "approver": persisted["approver"], "decidedVia": "remembered"}
