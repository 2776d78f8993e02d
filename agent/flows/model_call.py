"""One model call of a turn: the request, its frames on the stream, its retries (spec 03 §6)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from agent.domain import frames
from agent.domain.arguments import kept_arguments
from agent.domain.ids import new_id
from agent.domain.model_calls import Frame, ModelRequest, Reply, ReplyCall, Usage
from agent.domain.shortening import shortened
from agent.errors import Cancelled, ModelError
from agent.flows.ledger import Broken, Counted, count_broken, count_reply
from agent.spi import ModelProvider

RETRY_SECONDS = 0.5  # before retry n: 0.5 x 2^(n-1)
READ = "read"
TOOL_FRAMES = frozenset({"tool-input-start", "tool-input-delta", "tool-input-available"})

logger = logging.getLogger("agent.history")


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledTool:
    """A call of a reply under our id, with the kind that was stamped when the tool was offered."""

    id: str
    provider_call_id: str
    name: str
    input: object
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A finished model call, as the loop takes it."""

    reply: Reply
    calls: tuple[CalledTool, ...]
    counted: Counted
    model_id: str
    reasoning_ms: int | None
    ui: list[Frame]
    broken: tuple[Broken, ...]
    is_shortened: bool


class Writer(Protocol):
    """Where the frames of a call go; one that has `released` holds text back."""

    def write(self, frame: Frame) -> None: ...


class Unheard:
    """The writer of a call that nobody follows."""

    def write(self, frame: Frame) -> None:
        return


@dataclass(slots=True, kw_only=True)
class ModelCall:
    """The effect `llm:<step>`, or another call of a model within a run.

    A request that the vendor finds too long is shortened once. `broken` holds the attempts that broke off, also when
    the call fails in the end.
    """

    provider: ModelProvider
    request: ModelRequest
    writer: Writer
    step: int
    key: str  # the step's name, under which its ledger rows stand
    kinds: Mapping[str, str]  # tool name -> kind, as offered
    repeats: int  # earlier attempts of this step: it was begun before a crash
    retries: int
    model_id: str  # as asked, for attempts that broke off
    taken_ids: set[str]  # provider call ids of the run so far
    is_shortened: bool = False
    broken: list[Broken] = field(default_factory=list)
    _texts: list[str] = field(default_factory=list)
    _ids: dict[str, str] = field(default_factory=dict)
    _announced: set[str] = field(default_factory=set)
    _ui: list[Frame] = field(default_factory=list)
    _burst: float | None = None
    _reasoned: float = 0.0
    _wrote: bool = False

    async def run(self) -> Answer:
        """Call the provider until it answers; raises `ModelError` when it does not, `Cancelled` when asked to stop."""
        tries = self.repeats
        while True:
            self._begin(tries)
            try:
                return self._answer(await self.provider.stream(self.request, self._emit))
            except Cancelled as signal:
                self._break_off(signal)
                raise
            except asyncio.CancelledError as broken_off:
                self._break_off(broken_off)
                if self.request.cancelled.is_set():
                    raise Cancelled from None
                raise
            except ModelError as error:
                self._break_off(error)
                if not (error.too_long and self._shorten()) and (
                    not error.transient or len(self.broken) > self.retries
                ):
                    raise
            except Exception as error:
                self._break_off(error)
                raise
            if self.request.cancelled.is_set():
                raise Cancelled
            tries += 1
            await asyncio.sleep(RETRY_SECONDS * 2 ** (len(self.broken) - 1))

    @property
    def text(self) -> str:
        """What the unfinished attempt has shown so far."""
        return "".join(self._texts)

    @property
    def shown(self) -> str:
        """The part of it that followers have seen: a gate lets less pass than it takes."""
        return getattr(self.writer, "released", self.text)

    def _begin(self, tries: int) -> None:
        for gathered in (self._ids, self._announced, self._ui, self._texts):
            gathered.clear()
        self._burst, self._reasoned = None, 0.0
        if tries and (self._wrote or self.repeats):
            self.writer.write(frames.step_restart(self.step, tries + 1))
        elif not self._wrote:
            self.writer.write(frames.step_start())
        self._wrote = True

    def _shorten(self) -> bool:
        """Leave the older half of the conversation out, once; False when that was done or nothing can be left out."""
        less = None if self.is_shortened else shortened(self.request.messages)
        if less is None:
            return False
        logger.warning("%s: the conversation is too long for the model; its older half is left out", self.key)
        self.is_shortened = True
        key = self.request.idempotency_key and f"{self.request.idempotency_key}:shortened"
        self.request = replace(self.request, messages=less, idempotency_key=key)
        return True

    def _break_off(self, why: BaseException) -> None:
        """Count what the attempt has used; a provider puts what it knows of that on what it raises."""
        usage = getattr(why, "usage", None)
        counted = count_broken(self.request, usage if isinstance(usage, Usage) else None, self.text)
        number = len(self.broken) + 1
        self.broken.append(Broken(step=self.key, number=number, model_id=self.model_id, counted=counted))

    def _emit(self, frame: Frame) -> None:
        """Take a frame of the provider."""
        kind = frame["kind"]
        if kind == "reasoning":
            self._burst = self._burst or time.monotonic()
        elif self._burst is not None:
            self._reasoned += time.monotonic() - self._burst
            self._burst = None
        if kind == "text":
            if type(frame["text"]) is not str:
                return
            self._texts.append(frame["text"])
        elif kind in TOOL_FRAMES:
            frame = self._tool_frame(kind, frame)
        elif kind == "ui":
            self._ui.append(frame)
        elif kind != "reasoning":
            return  # a later port may know it; clients of this one do not
        self.writer.write(frame)

    def _tool_frame(self, kind: str, frame: Frame) -> Frame:
        call_id = self._ids.get(frame["id"]) or self._name(frame["id"])
        if kind == "tool-input-delta":
            return {"kind": kind, "id": call_id, "delta": frame["delta"]}
        tool_kind = self.kinds.get(frame["name"], READ)
        if kind == "tool-input-start":
            return frames.tool_input_start(call_id, frame["name"], tool_kind)
        self._announced.add(frame["id"])
        return frames.tool_input_available(call_id, frame["name"], tool_kind, kept_arguments(frame["input"]))

    def _name(self, provider_call_id: str) -> str:
        ours = self._ids[provider_call_id] = new_id()
        return ours

    def _answer(self, reply: Reply) -> Answer:
        if self._burst is not None:
            self._reasoned += time.monotonic() - self._burst
        calls = tuple(self._called(call) for call in reply.tool_calls)
        reasoned = int(self._reasoned * 1000) if reply.reasoning else None
        return Answer(
            reply=reply,
            calls=calls,
            counted=count_reply(self.request, reply),
            model_id=reply.model_id or self.model_id,
            reasoning_ms=reply.reasoning_ms if reply.reasoning_ms is not None else reasoned,
            ui=frames.stored_ui([*self._ui, *({"kind": "ui", **part} for part in reply.ui)]),
            broken=tuple(self.broken),
            is_shortened=self.is_shortened,
        )

    def _called(self, call: ReplyCall) -> CalledTool:
        """Give the call our id and announce it where the provider did not."""
        ours = self._ids.pop(call.id, "") or new_id()
        kind, given = self.kinds.get(call.name, READ), kept_arguments(call.input)
        if call.id not in self._announced:
            self.writer.write(frames.tool_input_start(ours, call.name, kind))
            self.writer.write(frames.tool_input_available(ours, call.name, kind, given))
        self._announced.discard(call.id)
        provider_call_id = unique(call.id, self.taken_ids.__contains__)
        self.taken_ids.add(provider_call_id)
        return CalledTool(id=ours, provider_call_id=provider_call_id, name=call.name, input=given, kind=kind)


def unique(provider_call_id: str, taken: Callable[[str], bool]) -> str:
    """A provider's id repeated within a run gets suffix -2, -3 ..."""
    if not taken(provider_call_id):
        return provider_call_id
    number = 2
    while taken(f"{provider_call_id}-{number}"):
        number += 1
    return f"{provider_call_id}-{number}"
