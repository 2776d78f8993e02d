"""What a stream lacks of the last recorded step, when its worker was gone before it had told (spec 03 §2).

Frames are stored in order, behind the commit that makes them true: a crash loses the last of them. They are a function
of recorded payloads, so whoever takes the run over, or finds it settled and its stream open, tells the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.domain import frames
from agent.domain.model_calls import Frame
from agent.domain.results import INTAKE, card_frames, outcome_of, put_first, result_of
from agent.domain.runs import Step
from agent.domain.snapshots import NumberedFrame
from agent.flows.answers import Told, finish_frame
from agent.flows.journal import Unit
from agent.flows.processors import OUTPUT
from agent.flows.structured import call_frames

ANSWER = "llm:"
CARDS = frozenset({"approval-requested", "approval-settled", "elicitation"})
SETTLED = frozenset({"tool-output", "tool-output-error", "tool-output-denied"})


@dataclass(slots=True)
class Shown:
    """What a stream shows of the step that was begun last, and how many were begun."""

    steps: int = 0
    text: str = ""
    reasoning: str = ""
    announced: set[str] = field(default_factory=set)
    settled: set[str] = field(default_factory=set)
    cards: set[tuple[str, str]] = field(default_factory=set)  # the kind of a card's frame, and its call
    components: set[str] = field(default_factory=set)
    finished: bool = False
    titled: bool = False
    queued: bool = False

    def take(self, frame: Frame) -> None:
        """Take a frame of the run itself, not of one that it asked."""
        kind = frame["kind"]
        if kind in {"step-start", "step-restart"}:
            self.__init__(steps=max(1, self.steps + (kind == "step-start")))  # type: ignore[misc]
        elif kind == "text":
            self.text += frame["text"]
        elif kind == "reasoning":
            self.reasoning += frame["text"]
        elif kind == "tool-input-available":
            self.announced.add(frame["id"])
        elif kind in SETTLED:
            self.settled.add(frame["id"])
        elif kind == "ui":
            self.components.add(frame["id"])
        elif kind in CARDS:
            self.cards.add((kind, frame["id"]))
        self.finished |= kind == "step-finish"
        self.titled |= kind == "title"
        self.queued |= kind == "queue"


def untold_by(unit: Unit, made: list[Frame]) -> list[Frame]:
    """The frames of a unit that has recorded something; a replayed one was told, or is told by `untold`."""
    return made if unit.steps else []


def shown(rows: Iterable[NumberedFrame], *, under: str | None = None) -> Shown:
    """What is to be seen of the last step in these rows; `under` a call, of the delegate that answers it."""
    seen = Shown()
    for row in rows:
        frame = {} if row.frame is None else json.loads(row.frame)
        if frame and frame.get("parentId") == under:
            seen.take(frame)
    return seen


def untold(steps: Sequence[Step], seen: Shown | None) -> list[Frame]:
    """The frames of the last recorded step that a stream lacks; None = it cannot be read, then those with an id."""
    recorded = {step.name: step.payload for step in steps}
    answers = [name for name in recorded if name.startswith(ANSWER)]
    no_call_seen = not answers if seen is None else not seen.steps
    before = list(_intake(recorded, seen or Shown())) if no_call_seen else []
    if not answers:
        return before
    number, told = len(answers), recorded[answers[-1]]
    if seen is None:
        text = _let_pass(told, recorded, answers[-1].removeprefix(ANSWER))
        seen = Shown(number, text, told.get("reasoning") or "", {*_ids(told)}, finished=True)
    if seen.steps > number:
        return []  # the next step was begun in the stream, so all of this one is there
    begun = seen.steps == number
    lacking = _rest(told, recorded, seen if begun else Shown(), answers[-1].removeprefix(ANSWER))
    return [*before, *([] if begun else [frames.step_start()]), *lacking]


def _intake(recorded: Mapping[str, Any], seen: Shown) -> Iterator[Frame]:
    """What is lacking of the questions that came before the first model call."""
    for call in (recorded.get(INTAKE) or {"toolCalls": ()})["toolCalls"]:
        if call["id"] not in seen.announced:
            yield frames.tool_input_available(call["id"], call["name"], call["kind"], call["input"])
        yield from _settled(call, {**recorded, f"persist:toolcall:{call['id']}": put_first(call)}, seen)


def _rest(told: Told, recorded: Mapping[str, Any], seen: Shown, step: str) -> Iterator[Frame]:
    for kind, whole, there in (
        ("reasoning", told.get("reasoning") or "", seen.reasoning),
        ("text", _let_pass(told, recorded, step), seen.text),
    ):
        if whole != there and whole.startswith(there):
            yield {"kind": kind, "text": whole[len(there) :]}
    yield from _new(told.get("ui") or (), seen)
    for call in told["toolCalls"]:
        if call["id"] not in seen.announced:
            yield frames.tool_input_available(call["id"], call["name"], call["kind"], call["input"])
    for call in told["toolCalls"]:
        yield from _settled(call, recorded, seen)
    yield from _structured(recorded, seen, f"structured:{step}:")
    words = (recorded.get(f"persist:tool-outputs:{step}") or {}).get("words", "")
    if words and not seen.text.endswith(words):
        yield frames.text(words)
    if not seen.finished and {f"persist:tool-outputs:{step}", "persist:run:end"} & recorded.keys():
        yield finish_frame(told)
    if "persist:title" in recorded and not seen.titled:
        yield frames.title(recorded["persist:title"]["title"])
    end = recorded.get("persist:run:end") or {}
    if "queue" in end and not seen.queued:
        yield frames.queue(end["queue"], end["started"] and end["started"]["runId"])


def _settled(call: Mapping[str, Any], recorded: Mapping[str, Any], seen: Shown) -> Iterator[Frame]:
    """The card of a call and its outcome, as far as they are recorded."""
    call_id = call["id"]
    persisted, awaited = recorded.get(f"persist:toolcall:{call_id}"), recorded.get(f"await:{call_id}")
    for frame in card_frames(call_id, persisted, awaited):
        if (frame["kind"], call_id) not in seen.cards:
            yield frame
    outcome = outcome_of(persisted, awaited, recorded.get(f"tool:{call_id}"))
    if outcome is None:
        return
    if call_id not in seen.settled:
        yield frames.tool_result(result_of(call, outcome))
    yield from _new(({"toolCallId": call["id"], **component} for component in outcome.get("ui") or ()), seen)


def _let_pass(told: Told, recorded: Mapping[str, Any], step: str) -> str:
    """The text of a step that may be seen: what the processors let pass, nothing while they have not said."""
    if not (recorded.get("run:prompt-stages") or {}).get("outputProcessors"):
        return str(told["text"])
    return str((recorded.get(f"{OUTPUT}{step}") or {}).get("text", ""))


def _structured(recorded: Mapping[str, Any], seen: Shown, tries: str) -> Iterator[Frame]:
    """What is lacking of the value that stands as a call."""
    for name, payload in recorded.items():
        for frame in call_frames(payload) if name.startswith(tries) else ():
            known = seen.settled if frame["kind"] in SETTLED else seen.announced
            if frame["id"] not in known:
                yield frame


def _new(components: Iterable[Mapping[str, Any]], seen: Shown) -> Iterator[Frame]:
    for component in components:
        if component["id"] not in seen.components:
            yield {"kind": "ui", **component}


def _ids(told: Told) -> Iterator[str]:
    return (call["id"] for call in told["toolCalls"])
