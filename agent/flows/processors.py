"""The host's processors: what a model is shown, and what is shown of a model (spec 11 §8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from agent.domain.model_calls import Frame
from agent.domain.processing import (
    LOOKBACK,
    BrokenPromise,
    InputPrompt,
    ProcessorContext,
    Verdict,
    changes_of,
    passed,
    replaced,
)
from agent.flows.host_code import ended
from agent.flows.journal import Attempt, Unit
from agent.flows.outputs import as_json
from agent.sinks.writer import FrameWriter
from agent.spi import InputProcessor, OutputProcessor

INPUT = "process:input:"
OUTPUT = "process:output:"
BEGINNINGS = frozenset({"step-start", "step-restart"})

T = TypeVar("T")


def mark(unit: Unit, step: int, stages: Mapping[str, Any]) -> Attempt:
    """The effect that a step of the turn begins with: what changes its prompt, else the model call."""
    return unit.mark(f"{INPUT}{step}", counted=False) if stages.get("inputProcessors") else unit.mark(f"llm:{step}")


def is_input(attempt: Attempt) -> bool:
    """Whether the prompt has to be derived first."""
    return attempt.name.startswith(INPUT)


async def derive(
    processors: Sequence[InputProcessor], prompt: InputPrompt, context: ProcessorContext
) -> dict[str, Any]:
    """What the processors, one after another, change in a prompt."""
    now = prompt
    for each in processors:
        answer = await _asked(partial(each, now, context), _prompt)
        now = now if answer is None else answer
    changes: dict[str, Any] = as_json(changes_of(prompt, now))
    return changes


async def judge(processors: Sequence[OutputProcessor], text: str, context: ProcessorContext) -> Verdict:
    """What becomes of a text: each processor sees what the one before it let pass; the first refusal stands."""
    now = text
    for each in processors:
        verdict = await _asked(partial(each, now, context), _verdict)
        if verdict.verdict == "reject":
            return verdict
        now = _after(now, verdict)
    return passed() if now == text else replaced(now)


class Gate:
    """The writer of a model call whose text is judged first: it is held, or streamed a lookback late."""

    def __init__(
        self, writer: FrameWriter, processors: Sequence[OutputProcessor], context: ProcessorContext, *, shown: str = ""
    ) -> None:
        self._writer, self._processors, self._context = writer, processors, context
        self._streams = bool(processors) and all(getattr(each, "incremental", False) for each in processors)
        self._lookback = max((getattr(each, "lookback", LOOKBACK) for each in processors), default=LOOKBACK)
        self._text, self._judged = "", 0
        self.released = shown  # what followers have seen of the step's text

    def write(self, frame: Frame) -> None:
        """Take a frame of the call; all but text passes."""
        if frame["kind"] == "text":
            self._take(frame["text"])
            return
        if frame["kind"] in BEGINNINGS:
            self._text, self._judged, self.released = "", 0, ""
        self._writer.write(frame)

    def rest(self, text: str) -> list[Frame]:
        """The frame of what was not shown of the text that may be seen."""
        if not text.startswith(self.released):
            raise BrokenPromise("an incremental output processor changed what it had let pass")
        left = text[len(self.released) :]
        return [{"kind": "text", "text": left}] if left else []

    def _take(self, text: str) -> None:
        self._text += text
        if not self._streams or len(self._text) - self._judged < max(self._lookback, 1):
            return
        self._judged = len(self._text)
        verdict = self._judge_now()
        if verdict.verdict != "reject":
            whole = _after(self._text, verdict)
            safe = whole[: max(len(self.released), len(whole) - self._lookback)]
            for frame in self.rest(safe):
                self.released = safe
                self._writer.write(frame)

    def _judge_now(self) -> Verdict:
        now = self._text
        for each in self._processors:
            verdict = _verdict(each(now, self._context))
            if verdict.verdict == "reject":
                return verdict
            now = _after(now, verdict)
        return replaced(now)


def _after(text: str, verdict: Verdict) -> str:
    return verdict.text if verdict.verdict == "replace" else text


async def _asked(call: Callable[[], object], take: Callable[[object], T]) -> T:
    answer = await ended(call, take, runs_async=False)  # a coroutine that it answers is awaited on the loop
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _prompt(answer: object) -> InputPrompt | None:
    if answer is not None and not isinstance(answer, InputPrompt):
        raise BrokenPromise(f"an input processor answers an InputPrompt or None, not {type(answer).__name__}")
    return answer


def _verdict(answer: object) -> Verdict:
    if not isinstance(answer, Verdict):
        raise BrokenPromise(
            f"an output processor answers passed(), replaced(text) or rejected(reason), not {type(answer).__name__}"
        )
    return answer
