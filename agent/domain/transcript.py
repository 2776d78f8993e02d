"""What a provider is shown of a thread (spec 03 §5): every call with exactly one result, nothing blank, lawful ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent.domain.model_calls import Json, ShownAttachment, ShownCall, ShownMessage, ShownResult
from agent.domain.results import receipt
from agent.domain.snapshots import ToolCallOutcome, TurnMessage
from agent.domain.states import ToolCallStatus

NEVER_COMPLETED = "This call was interrupted before it completed. Nothing is known of its effect."
REJECTED = (
    "A person decided that this is not to be done. Nothing was done. Do not try it again and do not guess at reasons."
)
EXPIRED = "Nobody answered in time. Nothing was done."


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """What a provider asks of a transcript beyond the common rules."""

    alternating_roles: bool = False
    leading_system_only: bool = False


def manners_of(provider: object) -> Manners:
    """What a provider declares by its optional attributes."""
    return Manners(
        alternating_roles=bool(getattr(provider, "alternating_roles", False)),
        leading_system_only=bool(getattr(provider, "leading_system_only", False)),
    )


def dangling_calls(messages: Iterable[TurnMessage]) -> list[str]:
    """Our ids of the calls that have no result on their message."""
    return [call["id"] for message in messages for call in _without_result(message)]


def repair(messages: Sequence[TurnMessage], outcomes: Mapping[str, ToolCallOutcome]) -> list[TurnMessage]:
    """Give every call its one result, drop results without a call, leave out blank assistant messages."""
    mended = (_repair_one(message, outcomes) for message in messages)
    return [message for message in mended if not blank(message)]


def blank(message: TurnMessage) -> bool:
    """An assistant message without content and without calls is not shown (ui and reasoning are not content)."""
    return message.role == "assistant" and not message.content.strip() and not message.tool_calls


def show(messages: Iterable[TurnMessage]) -> list[ShownMessage]:
    """The repaired messages as a provider is shown them: its own call ids, unique within what is shown."""
    taken: dict[str, int] = {}
    return [_show_one(message, taken) for message in messages]


def lawful(system: str, messages: Sequence[ShownMessage], manners: Manners) -> tuple[str, tuple[ShownMessage, ...]]:
    """The last look, on the final list whatever produced it: system text where it belongs, roles as asked."""
    first = next((place for place, message in enumerate(messages) if message.role == "user"), 0)
    # a window may begin with an answer: the first thing sent, system text apart, is a user's message
    kept = [message for place, message in enumerate(messages) if place >= first or message.role == "system"]
    if manners.leading_system_only:
        inner = [message.content for message in kept if message.role == "system"]
        system = "\n\n".join(part for part in (system, *inner) if part)
        kept = [message for message in kept if message.role != "system"]
    if manners.alternating_roles:
        kept = _joined(kept)
    return system, tuple(kept)


def _without_result(message: TurnMessage) -> list[dict[str, Any]]:
    have = {result["id"] for result in message.tool_results or ()}
    return [call for call in message.tool_calls or () if call["id"] not in have]


def _repair_one(message: TurnMessage, outcomes: Mapping[str, ToolCallOutcome]) -> TurnMessage:
    calls = message.tool_calls or []
    results = {result["id"]: result for result in message.tool_results or ()}
    if len(results) == len(calls) and all(call["id"] in results for call in calls):
        return message
    mended = [results.get(call["id"]) or closing_result(call, outcomes.get(call["id"])) for call in calls]
    return replace(message, tool_results=mended or None)


def closing_result(call: Mapping[str, Any], outcome: ToolCallOutcome | None) -> dict[str, Any]:
    """The result that closes a call whose message lacks one, from what its row says."""
    result: dict[str, Any] = {"id": call["id"], "name": call["name"]}
    match outcome.status if outcome else None:
        case "executed" | "auto_executed":
            assert outcome is not None
            return {**result, "output": outcome.output}
        case "rejected" | "expired":
            assert outcome is not None
            return {**result, **refusal(outcome.status, outcome.decision_reason)}
        case "failed":
            return {**result, "output": None, "error": (outcome and outcome.error) or NEVER_COMPLETED}
        case "proposed":
            return {**result, "output": receipt(outcome.proposal_id if outcome else None)}
        case _:
            return {**result, "output": None, "error": NEVER_COMPLETED}


def refusal(status: str, reason: str | None = None) -> dict[str, Any]:
    """What the result of a call says that nobody allowed: rejected by a person, or expired."""
    if status == ToolCallStatus.EXPIRED:
        output = {"rejected": True, "expired": True, "reason": "approval expired", "note": EXPIRED}
        return {"output": output, "expired": True}
    return {"output": {"rejected": True, "reason": reason or "rejected by user", "note": REJECTED}, "denied": True}


def _show_one(message: TurnMessage, taken: dict[str, int]) -> ShownMessage:
    shown = {call["id"]: _unique(call["providerCallId"], taken) for call in message.tool_calls or ()}
    return ShownMessage(
        role=message.role,  # type: ignore[arg-type]  # stored roles are the port's roles
        content=message.content,
        tool_calls=tuple(
            ShownCall(id=shown[call["id"]], name=call["name"], input=call["input"]) for call in message.tool_calls or ()
        ),
        tool_results=tuple(
            show_result(shown[result["id"]], result) for result in message.tool_results or () if result["id"] in shown
        ),
        attachments=tuple(
            ShownAttachment(
                url=item["url"], content_type=item["contentType"], name=item["name"], media_id=item.get("mediaId")
            )
            for item in message.attachments or ()
        ),
    )


def show_result(provider_call_id: str, result: Mapping[str, Any]) -> ShownResult:
    """A stored result as a provider is shown it."""
    failed = bool(result.get("error") or result.get("denied") or result.get("expired"))
    output: Json = result["error"] if result.get("error") else result["output"]
    return ShownResult(id=provider_call_id, name=result["name"], output=output, failed=failed)


def _unique(provider_call_id: str, taken: dict[str, int]) -> str:
    """Providers repeat ids between turns (`call_0`); what is shown together gets a suffix."""
    count = taken[provider_call_id] = taken.get(provider_call_id, 0) + 1
    return provider_call_id if count == 1 else _unique(f"{provider_call_id}-{count}", taken)


def _joined(messages: Iterable[ShownMessage]) -> list[ShownMessage]:
    joined: list[ShownMessage] = []
    for message in messages:
        last = joined[-1] if joined else None
        if last is None or last.role != message.role or last.tool_calls:
            joined.append(message)
            continue
        content = "\n\n".join(part for part in (last.content, message.content) if part)
        joined[-1] = replace(message, content=content, attachments=last.attachments + message.attachments)
    return joined
