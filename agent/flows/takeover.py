"""What a worker does first with a run that another one had begun: account for its call, and tell what it did not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent.domain.canonical import compact_json
from agent.domain.model_calls import Frame
from agent.domain.runs import OpenRun, Run, Step
from agent.domain.states import UsagePurpose
from agent.flows import ledger, retelling
from agent.flows.retelling import Shown
from agent.registry import provider_for
from agent.sinks import get_sink
from agent.store.base import AgentStore

CALLS: Mapping[str, UsagePurpose] = {
    "llm": UsagePurpose.CHAT,
    "history": UsagePurpose.HISTORY_SUMMARY,
    "structured": UsagePurpose.STRUCTURED_OUTPUT,
    "followups": UsagePurpose.FOLLOW_UPS,
}


def take_over(store: AgentStore, opened: OpenRun) -> list[Frame]:
    """The frames that are still to be told; in the unit of the claim, so that the last call is counted once."""
    seen = shown_of(opened.run)
    count_crash(store, opened.run, opened.steps, seen=seen, attempt=opened.run.attempt - 1)
    return retelling.untold(opened.steps, seen)


def count_crash(
    store: AgentStore, run: Run, steps: Sequence[Step], *, seen: Shown | None, attempt: int | None = None
) -> None:
    """Record the model call that an attempt had begun and nobody finished: money may have been spent."""
    effect, _, step = (run.effect_name or "").partition(":")
    if effect not in CALLS:
        return
    begun = seen is not None and effect == "llm" and seen.steps == int(step) + 1
    counted = ledger.count_crashed(_sent(steps), seen.reasoning + seen.text if seen and begun else "")
    crashed = run.attempt if attempt is None else attempt
    key = f"{run.effect_name}#{crashed}.1"  # a call that was handed over is recorded already, under the same key
    model_id = run.model_id or _default_model()
    store.record_usage(ledger.row(run, counted, model_id=model_id, step_key=key, purpose=CALLS[effect]))


def _default_model() -> str:
    """What answers today; a run is given up also where that cannot be told."""
    try:
        chosen = provider_for(None)
    except Exception:
        return "unknown"
    return chosen.model or chosen.name


def shown_of(run: Run) -> Shown | None:
    """What the run's stream shows of its last step; None where the sink cannot tell."""
    stored = getattr(get_sink(), "stored", None)
    under = run.parent_call_id if run.is_delegate else None
    return None if stored is None else retelling.shown(stored(run.stream_run_id), under=under)


def _sent(steps: Sequence[Step]) -> Iterator[str]:
    """What the call had carried, roughly: the prompt, the thread, and what the run had added."""
    for step in steps:
        verb, _, _ = step.name.partition(":")
        payload: Any = step.payload
        if step.name == "run:prompt-stages":
            yield from payload["prompt"]
        elif step.name == "load:thread":
            yield from (message["content"] for message in payload["messages"])
        elif verb == "llm":
            yield payload["text"]
        elif verb == "tool":
            yield compact_json(payload.get("output"))
