"""A model's answer: its rows, its journal payload, its place in the transcript and its closing frame."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agent.domain import frames
from agent.domain.commands import AppendMessage
from agent.domain.ids import new_id
from agent.domain.ledger import UsageEntry
from agent.domain.model_calls import Frame, Json, ShownCall, ShownMessage
from agent.domain.pricing import usd
from agent.domain.runs import Run
from agent.domain.text import is_blank
from agent.domain.transcript import show_result
from agent.flows import events, ledger
from agent.flows.journal import as_recorded
from agent.flows.model_call import Answer
from agent.store.base import AgentStore

Told = Mapping[str, Any]  # the payload of `llm:<step>`


def record_answer(
    store: AgentStore, run: Run, answer: Answer, *, step: int, run_attempt: int, provider: str, gated: bool = False
) -> Told:
    """The rows of a finished model call, and the payload of `llm:<step>`: ledger first, then the message.

    The message of a `gated` one has an id already, and is kept once it may be seen.
    """
    if answer.broken:
        store.bump_run_retries(run.id, len(answer.broken))
    for broken in answer.broken:
        store.record_usage(ledger.broken_row(run, broken, run_attempt=run_attempt))
    message_id = None if blank(answer) else new_id()
    entry = store.record_usage(
        ledger.row(run, answer.counted, model_id=answer.model_id, step_key=f"llm:{step}", message_id=message_id)
    )
    # the message and the journal keep the same bytes: what a model is shown does not depend on which of them is read
    told: Told = as_recorded(_payload(answer, message_id, entry, provider))
    if message_id is not None and not gated:
        keep_answer(store, run, told)
    return told


def keep_answer(store: AgentStore, run: Run, told: Told) -> None:
    """Append the assistant message of an answer."""
    said = _message(run, told)
    store.append_message(said)
    events.message_stored(store, said, actor=run.actor, thread_id=run.thread_id)


def plain_message(run: Run, text: str) -> AppendMessage:
    """An assistant message of the run that is only words."""
    return AppendMessage(
        id=new_id(),
        thread_id=run.thread_id,
        role="assistant",
        content=text,
        agent_name=run.agent_name,
        persona=run.persona,
        run_id=run.id,
    )


def blank(answer: Answer) -> bool:
    """Nothing to show: no message is stored, the ledger row still is."""
    reply = answer.reply
    return not (not is_blank(reply.text) or answer.calls or answer.ui or (reply.reasoning or "").strip())


def is_empty(told: Told) -> bool:
    """The same of a recorded answer."""
    return not (told["text"] or told["toolCalls"] or told.get("ui") or (told.get("reasoning") or "").strip())


def shown_answer(told: Told, results: Sequence[Mapping[str, Any]], provider: str) -> ShownMessage:
    """The answer as the next model call of this run is shown it, with the results of its calls."""
    ids = {call["id"]: call["providerCallId"] for call in told["toolCalls"]}
    state = told.get("providerState")
    return ShownMessage(
        role="assistant",
        content=told["text"],
        tool_calls=tuple(
            ShownCall(id=call["providerCallId"], name=call["name"], input=call["input"]) for call in told["toolCalls"]
        ),
        tool_results=tuple(show_result(ids[result["id"]], result) for result in results),
        provider_state=state["state"] if state and state["provider"] == provider else None,
    )


def finish_frame(told: Told) -> Frame:
    return frames.step_finish(told["usage"], told.get("reasoningMs"), told["modelId"])


def _payload(answer: Answer, message_id: str | None, entry: UsageEntry, provider: str) -> dict[str, Any]:
    reply = answer.reply
    payload: dict[str, Json] = {
        "messageId": message_id,
        "text": "" if is_blank(reply.text) else reply.text,
        "toolCalls": [
            {
                "id": call.id,
                "providerCallId": call.provider_call_id,
                "name": call.name,
                "input": call.input,
                "kind": call.kind,
            }
            for call in answer.calls
        ],
        "usage": ledger.message_usage(entry),
        "modelId": answer.model_id,
        "stop": reply.stop,
    }
    state = None if reply.provider_state is None else {"provider": provider, "state": reply.provider_state}
    reported = entry.reported_cost_nanos
    optional = {
        "reportedCostUsd": None if reported is None else usd(reported),
        "reasoning": reply.reasoning or None,
        "reasoningMs": answer.reasoning_ms,
        "ui": answer.ui or None,
        "providerState": state,
        "shortened": answer.is_shortened or None,
    }
    return payload | {name: value for name, value in optional.items() if value is not None}


def _message(run: Run, told: Told) -> AppendMessage:
    state = told.get("providerState")
    return AppendMessage(
        id=told["messageId"],
        thread_id=run.thread_id,
        role="assistant",
        content=told["text"],
        tool_calls=told["toolCalls"] or None,
        usage=told["usage"],
        agent_name=run.agent_name,
        persona=run.persona,
        run_id=run.id,
        reasoning=told.get("reasoning"),
        reasoning_ms=told.get("reasoningMs"),
        ui=told.get("ui"),
        provider_state=None if state is None else json.dumps(state),
    )
