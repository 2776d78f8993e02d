"""What a turn left behind, with ids and times aside: two turns that went the same way have equal ends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.models import Message, Run, RunStep, StreamFrame, Thread, ThreadSummary, ToolCall, UsageEntry
from tests.anonymous import Anonymous
from tests.crash.fold import Shown, fold, fold_messages

COUNTED = {"attempt", "recoveries", "retries"}  # what a repeat may change
ROW = {"id", "price_id", "dispatched_at"}


@dataclass(frozen=True, kw_only=True)
class End:
    """Everything that must be as if nothing had happened."""

    thread: str
    transcript: str
    calls: str
    ledger: str
    run: str
    journal: str
    summary: str
    shown: str


@dataclass(frozen=True, kw_only=True)
class Repeated:
    """What may differ: repeated effects, and how they are told."""

    attempt: int
    retries: int
    broken: list[str]  # keys of ledger rows of attempts that broke off
    restarts: list[int]  # steps whose frames begin anew


def ending(run_id: str) -> End:
    """The end state of a run and of its thread."""
    run = Run.objects.values().get(pk=run_id)
    thread = Thread.objects.values().get(pk=run["thread_id"])
    messages = list(Message.objects.filter(thread_id=thread["id"]).order_by("seq").values())
    calls = {row["id"]: row for row in ToolCall.objects.filter(thread_id=thread["id"]).values()}
    ordered = [calls.pop(call["id"]) for message in messages for call in message["tool_calls"] or ()]
    assert not calls, "calls that no message has"
    usage = UsageEntry.objects.filter(thread_id=thread["id"]).exclude(step_key__contains="#").order_by("id")
    steps = RunStep.objects.filter(run_id=run_id).in_order()
    told = Anonymous()
    return End(
        thread=told(thread),
        transcript=told(messages),
        calls=told(ordered),
        ledger=told([_without(row, ROW) for row in usage.values()]),
        run=told(_without(run, COUNTED | {"dispatched_at"})),
        journal=told([[step.position, step.name, json.loads(step.payload)] for step in steps]),
        summary=told(list(ThreadSummary.objects.filter(thread_id=thread["id"]).values())),
        shown=told(shown(run_id)),
    )


def repeated(run_id: str) -> Repeated:
    """What was done again on the way."""
    run = Run.objects.get(pk=run_id)
    broken = UsageEntry.objects.filter(run_id=run_id, step_key__contains="#").order_by("id")
    return Repeated(
        attempt=run.attempt,
        retries=run.retries,
        broken=[f"{row.step_key}" for row in broken],
        restarts=[frame["step"] for frame in frames(run_id) if frame["kind"] == "step-restart"],
    )


def frames(run_id: str) -> list[dict[str, Any]]:
    """The run's frames in order; its stream is gapless from 1, with at most one end, which is the last row."""
    run = Run.objects.get(pk=run_id)
    rows = list(StreamFrame.objects.filter(run_id=run.stream_run_id).order_by("seq"))
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    assert all(row.frame is not None for row in rows[:-1])
    told = [json.loads(row.frame) for row in rows if row.frame is not None]
    under = None if run.stream_run_id == run.pk else run.parent_call_id
    return [_without(frame, {"parentId"}) for frame in told if frame.get("parentId") == under]


def ended(run_id: str) -> bool:
    """Whether the stream has its terminal row, without an error."""
    last = StreamFrame.objects.filter(run_id=run_id).order_by("seq").last()
    return last is not None and last.frame is None and last.error is None


def shown(run_id: str) -> Shown:
    """What a client that followed throughout shows in the end; it has to be what is stored."""
    told = fold(frames(run_id))
    mine = Message.objects.filter(run_id=run_id, thread_id=Run.objects.get(pk=run_id).thread_id)
    answers = mine.filter(role="assistant").order_by("seq").values()
    contents = [_without(step, {"usage", "first"}) for step in told["steps"]]
    assert contents == fold_messages(answers), "a follower does not see what is stored"
    return told


def _without(row: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}
