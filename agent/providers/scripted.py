"""A model that says what it was told to say: deterministic, no clock of its own, no network.

ScriptedProvider(["Hello there."])                          # one reply a call, in order
ScriptedProvider([
    ScriptedReply(calls=[call("lookup_order", number=1042)]),
    ScriptedReply("It left the shop on Monday."),
    ModelError(transient=True, status=429),                 # raised instead of an answer
])
ScriptedProvider(lambda request: f"You said: {request.messages[-1].content}")
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agent.domain.arguments import raw_text
from agent.domain.model_calls import FrameEmitter, Json, ModelRequest, Reply, ReplyCall, Stop, Usage
from agent.errors import Cancelled, ModelError
from agent.providers.ids import used_ids, with_unique_ids

WORD = re.compile(r"\s*\S+|\s+")  # all of them together are the text
CHARACTERS_A_TOKEN = 4
TOKENS_A_RESULT = 20
TOKENS_A_CALL = 10


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """One answer. `delay_ms` is the pause before each word; `error` breaks the answer off after what was said."""

    text: str = ""
    reasoning: str = ""
    calls: Sequence[ReplyCall] = ()
    ui: Sequence[dict[str, Json]] = ()
    delay_ms: float = 0
    error: BaseException | None = None
    usage: Usage | Literal["counted"] | None = "counted"  # None = the vendor said nothing
    stop: Stop | None = None  # None = tool_calls when there are calls, else end
    model_id: str | None = None
    provider_state: str | None = None


Answer = str | Reply | ScriptedReply | BaseException
Script = Sequence[Answer] | Callable[[ModelRequest], Answer | Awaitable[Answer]]


def call(tool: str, /, call_id: str = "call_1", **arguments: Json) -> ReplyCall:
    """A tool call of a script. The provider tells repeated ids apart, so `call_id` need not be given."""
    return ReplyCall(id=call_id, name=tool, input=arguments)


class ScriptedProvider:
    """Answers from a script: a list, one entry a call, or a function (sync or async) of the request.

    Emits one text frame a word; the words put together are the text. Usage is counted, never measured: input is a
    quarter of the characters of system and message texts, rounded up, plus 20 a tool result; output is one a word of
    text and reasoning, plus 10 a call. A call id that the transcript or this reply has already gets the suffix -2,
    -3 ... `requests` holds the last 50 requests. Raises `ModelError` when a list is used up, what the script raises,
    and `Cancelled`, with the usage so far, when the request's flag is set.
    """

    alternating_roles = False
    leading_system_only = False
    supports_tools = True

    def __init__(self, script: Script, *, model: str = "scripted") -> None:
        self.default_model = model
        self.requests: deque[ModelRequest] = deque(maxlen=50)
        self._script = script
        self._asked = 0

    def models(self) -> list[str]:
        """The one name this provider answers under unless it is asked for another."""
        return [self.default_model]

    async def stream(self, request: ModelRequest, emit: FrameEmitter) -> Reply:
        """Play the next answer of the script."""
        self.requests.append(request)
        answer = await self._answer(request)
        if isinstance(answer, BaseException):
            raise answer
        performance = _Performance(_spoken(answer), request)
        await performance.play(emit)
        model = request.model or self.default_model
        if isinstance(answer, Reply):
            return replace(answer, tool_calls=performance.calls, model_id=answer.model_id or model)
        return performance.reply(model)

    async def _answer(self, request: ModelRequest) -> Answer:
        self._asked += 1
        if callable(self._script):
            answer = self._script(request)
            return await answer if inspect.isawaitable(answer) else answer
        if self._asked > len(self._script):
            raise ModelError(
                f"The script of this provider holds {len(self._script)} answers and was asked for answer "
                f"{self._asked} (purpose {request.purpose})."
            )
        return self._script[self._asked - 1]


def _spoken(answer: str | Reply | ScriptedReply) -> ScriptedReply:
    if isinstance(answer, ScriptedReply):
        return answer
    if isinstance(answer, str):
        return ScriptedReply(answer)
    return ScriptedReply(
        answer.text, answer.reasoning or "", answer.tool_calls, [dict(component) for component in answer.ui]
    )


class _Performance:
    """One answer being said."""

    def __init__(self, spoken: ScriptedReply, request: ModelRequest) -> None:
        self.spoken = spoken
        self.request = request
        self.calls = with_unique_ids(spoken.calls, used_ids(request.messages)) if spoken.calls else ()
        self.said = 0

    async def play(self, emit: FrameEmitter) -> None:
        await self._say("reasoning", self.spoken.reasoning, emit)
        await self._say("text", self.spoken.text, emit)
        for component in self.spoken.ui:
            emit({"kind": "ui", **component})
        for planned in self.calls:
            for frame in _call_frames(planned):
                emit(frame)
        if self.spoken.error is not None:
            raise self.spoken.error

    async def _say(self, kind: str, text: str, emit: FrameEmitter) -> None:
        pause, cancelled = self.spoken.delay_ms / 1000, self.request.cancelled.is_set
        for word in WORD.findall(text):
            if pause:
                await asyncio.sleep(pause)
            if cancelled():
                raise Cancelled(usage=self.usage())
            emit({"kind": kind, "text": word})
            self.said += 1

    def usage(self) -> Usage | None:
        if self.spoken.usage != "counted":
            return self.spoken.usage
        messages = self.request.messages
        characters = len(self.request.system) + sum(len(message.content) for message in messages)
        results = sum(len(message.tool_results) for message in messages)
        return Usage(
            input_tokens=-(-characters // CHARACTERS_A_TOKEN) + results * TOKENS_A_RESULT,
            output_tokens=self.said + len(self.calls) * TOKENS_A_CALL,
        )

    def reply(self, model: str) -> Reply:
        return Reply(
            text=self.spoken.text,
            tool_calls=self.calls,
            usage=self.usage(),
            stop=self.spoken.stop or ("tool_calls" if self.calls else "end"),
            model_id=self.spoken.model_id or model,
            reasoning=self.spoken.reasoning or None,
            ui=self.spoken.ui,
            provider_state=self.spoken.provider_state,
        )


def _call_frames(planned: ReplyCall) -> Iterator[dict[str, Json]]:
    raw = raw_text(planned.input)
    arguments = json.dumps(planned.input, ensure_ascii=False) if raw is None else raw
    yield {"kind": "tool-input-start", "id": planned.id, "name": planned.name}
    yield {"kind": "tool-input-delta", "id": planned.id, "delta": arguments}
    yield {"kind": "tool-input-available", "id": planned.id, "name": planned.name, "input": planned.input}
