"""The frames of a run's stream (spec 05 §1): JSON objects with a `kind`; absent fields are left out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from agent.domain.model_calls import Frame, Json
from agent.domain.proposals import target_of

SHOWN_KINDS: Mapping[str, str] = {"ask": "action", "agent": "read"}


def encode(frame: Frame) -> str:
    """A frame as it is stored and sent: one ASCII-escaped JSON object and a newline."""
    return json.dumps(frame, separators=(",", ":")) + "\n"


def is_text(frame: Frame) -> bool:
    """Only a frame that is exactly kind and text may be gathered with its neighbours."""
    return frame["kind"] == "text" and len(frame) == 2


def text(words: str) -> Frame:
    return {"kind": "text", "text": words}


def step_start() -> Frame:
    return {"kind": "step-start"}


def step_restart(step: int, attempt: int) -> Frame:
    return {"kind": "step-restart", "step": step, "attempt": attempt}


def tool_input_start(call_id: str, name: str, tool_kind: str) -> Frame:
    return {"kind": "tool-input-start", "id": call_id, "name": name, "toolKind": _shown_kind(tool_kind)}


def tool_input_available(call_id: str, name: str, tool_kind: str, value: Json) -> Frame:
    return {
        "kind": "tool-input-available",
        "id": call_id,
        "name": name,
        "input": value,
        "toolKind": _shown_kind(tool_kind),
    }


def _shown_kind(kind: str) -> str:
    """Clients know reads and actions; a question is what a person has to settle, asking an agent changes nothing."""
    return SHOWN_KINDS.get(kind, kind)


def tool_result(result: Mapping[str, Any]) -> Frame:
    """The frame of a settled call, from the result that its message keeps."""
    if result.get("denied") or result.get("expired"):
        reason = (result.get("output") or {}).get("reason")
        return without_none({"kind": "tool-output-denied", "id": result["id"], "reason": reason})
    if result.get("error"):
        return {"kind": "tool-output-error", "id": result["id"], "error": result["error"]}
    return {"kind": "tool-output", "id": result["id"], "output": result["output"]}


def approval_requested(call_id: str, asked: Mapping[str, Any]) -> Frame:
    """The card of a call that waits, from what was recorded of it."""
    return without_none(
        {
            "kind": "approval-requested",
            "id": call_id,
            "approver": asked["approver"],
            "digest": asked["digest"],
            "fourEyes": asked.get("fourEyes"),
            "expiresAt": asked.get("deadline"),
            "confirmation": asked.get("confirmation"),
            "target": target_of(asked.get("proposalId")),
        }
    )


def elicitation(call_id: str, asked: Mapping[str, Any]) -> Frame:
    """Questions to the user."""
    request = without_none({"preamble": asked.get("preamble"), "questions": asked["questions"]})
    return {"kind": "elicitation", "id": call_id, "request": request}


def approval_settled(call_id: str, decided: Mapping[str, Any]) -> Frame:
    """What became of a card, from what was recorded of its decision."""
    return without_none(
        {
            "kind": "approval-settled",
            "id": call_id,
            "status": decided["status"],
            "approver": decided.get("approver"),
            "decidedBy": decided.get("decidedBy"),
            "decidedVia": decided.get("decidedVia"),
            "remember": decided.get("remember"),
            "reason": decided.get("reason"),
        }
    )


def step_finish(usage: Mapping[str, Any] | None, reasoning_ms: int | None, model: str | None) -> Frame:
    """`usage` as the message keeps it: its `costUsd` moves up, and null there means unpriced."""
    frame: Frame = {"kind": "step-finish"}
    if usage is not None:
        frame["usage"] = {name: value for name, value in usage.items() if name != "costUsd"}
        frame["costUsd"] = usage.get("costUsd")
    return frame | without_none({"reasoningMs": reasoning_ms, "model": model})


def title(text: str) -> Frame:
    return {"kind": "title", "title": text}


def queue(state: Mapping[str, Any], started_run_id: str | None) -> Frame:
    """What waits as its owner sees it, and the message that was started meanwhile."""
    return {"kind": "queue", "queue": state, **({"started": started(started_run_id)} if started_run_id else {})}


def started(run_id: str) -> dict[str, str]:
    """A message that was started: its id is that of its run."""
    return {"messageId": run_id, "runId": run_id}


def cancelled() -> Frame:
    return {"kind": "cancelled"}


def stored_ui(frames: Iterable[Frame]) -> list[dict[str, Any]]:
    """The components to keep, in order of first sight: the last props of each id; not partial or withdrawn ones."""
    last: dict[str, dict[str, Any]] = {}
    for frame in frames:
        if frame.get("kind") == "ui" and not frame.get("partial"):
            last[frame["id"]] = {name: value for name, value in frame.items() if name not in ("kind", "partial")}
    return [component for component in last.values() if component.get("props")]


def without_none(frame: Mapping[str, Any]) -> Frame:
    return {name: value for name, value in frame.items() if value is not None}
