"""PROVIDER_CONTRACT: what every `ModelProvider` promises, proved against a vendor that answers as it is told.

    class Subject:                                    # yours: a loopback server that speaks your vendor's format
        secret = "sk-test"
        def answering(self, *answers): ...            # -> your provider, whose vendor gives these answers in order

    @pytest.mark.parametrize("case", PROVIDER_CONTRACT, ids=lambda case: case.name)
    def test_contract(case): case.run(Subject())

Every case runs an event loop of its own.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from agent.domain.model_calls import (
    CancelFlag,
    Frame,
    ModelRequest,
    NeverCancelled,
    Reply,
    ReplyCall,
    ShownCall,
    ShownMessage,
    ShownResult,
    Stop,
    ToolSpec,
    Usage,
)
from agent.errors import Cancelled, ModelError
from agent.spi import ModelProvider
from agent.testing.contracts.base import Case, ContractMismatch, expect, same

PATIENCE = 60.0  # seconds before a case that hangs is a broken promise; the first may import a library
STOPS_WITHIN = 1.0  # seconds, of which the promise speaks


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorAnswer:
    """What the vendor gives for one call. `usage` is in our convention: the subject says it in the vendor's own."""

    text: tuple[str, ...] = ()  # the pieces it is streamed in
    reasoning: tuple[str, ...] = ()
    calls: tuple[ReplyCall, ...] = ()  # {"__raw": "..."} as input: these malformed arguments
    usage: Usage | None = None
    stop: Stop = "end"
    ending: Literal["end", "silence", "cut"] = "end"  # silence: the connection stays open and nothing comes
    status: int | None = None  # refused with this HTTP status, and an error text that holds the secret


class ProviderSubject(Protocol):
    """A provider under test together with the vendor behind it."""

    secret: str

    def answering(self, *answers: VendorAnswer) -> ModelProvider:
        """A provider whose vendor gives these answers, one a call."""


Proof = Callable[[ProviderSubject], Awaitable[None]]
PROVIDER_CONTRACT: list[Case[ProviderSubject]] = []


def promise(name: str) -> Callable[[Proof], Proof]:
    def add(proof: Proof) -> Proof:
        def run(subject: ProviderSubject) -> None:
            async def with_patience() -> None:
                try:
                    await asyncio.wait_for(proof(subject), PATIENCE)
                except TimeoutError:
                    raise ContractMismatch(f"{name}: still waiting after {PATIENCE} s") from None

            asyncio.run(with_patience())

        PROVIDER_CONTRACT.append(Case(name, run))
        return proof

    return add


TOOL = ToolSpec(
    name="lookup_order",
    description="Find an order of the shop.",
    schema={"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
)
QUESTION = ShownMessage(role="user", content="Where are orders 1042 and 1043?")
USAGE = Usage(input_tokens=40, output_tokens=12)
FIRST = ReplyCall(id="call_abc123", name="lookup_order", input={"number": 1042})
SECOND = ReplyCall(id="call_def456", name="lookup_order", input={"number": 1043})


@dataclass(slots=True)
class _Listener:
    """An emitter that keeps the frames and tells when the first one is there."""

    frames: list[Frame] = field(default_factory=list)
    heard: asyncio.Event = field(default_factory=asyncio.Event)

    def __call__(self, frame: Frame) -> None:
        self.frames.append(frame)
        self.heard.set()

    def joined(self, kind: str, key: str = "text", **fields: object) -> str:
        wanted = {"kind": kind, **fields}
        return "".join(frame[key] for frame in self.frames if wanted.items() <= frame.items())

    def of(self, call_id: str) -> list[Frame]:
        return [frame for frame in self.frames if frame.get("id") == call_id]


def _request(*messages: ShownMessage, cancelled: CancelFlag | None = None) -> ModelRequest:
    return ModelRequest(
        system="You help the desk.",
        messages=messages or (QUESTION,),
        tools=(TOOL,),
        settings={"max_tokens": 500},
        cancelled=cancelled or NeverCancelled(),
    )


def _with_results(reply: Reply) -> ShownMessage:
    return ShownMessage(
        role="assistant",
        content=reply.text,
        tool_calls=tuple(ShownCall(id=call.id, name=call.name, input=call.input) for call in reply.tool_calls),
        tool_results=tuple(ShownResult(id=call.id, name=call.name, output={"sent": True}) for call in reply.tool_calls),
        provider_state=reply.provider_state,
    )


@promise("text arrives in order, piece by piece, and is the text of the reply")
async def _text(subject: ProviderSubject) -> None:
    pieces = ("Order ", "1042 ", "left\n", "the shop – ", "on Monday. 😀")
    listener = _Listener()
    reply = await subject.answering(VendorAnswer(text=pieces, usage=USAGE)).stream(_request(), listener)
    same(listener.joined("text"), "".join(pieces), "the text frames put together")
    same(reply.text, "".join(pieces), "the text of the reply")
    expect(len(listener.frames) > 1, "an answer in five pieces comes as more than one frame")
    same((reply.stop, list(reply.tool_calls)), ("end", []), "how the answer ended")
    expect(reply.model_id, "the reply names the model that answered")


@promise("reasoning is kept apart from the text")
async def _reasoning(subject: ProviderSubject) -> None:
    listener = _Listener()
    answer = VendorAnswer(reasoning=("Let me ", "think."), text=("Done.",), usage=USAGE)
    reply = await subject.answering(answer).stream(_request(), listener)
    same(listener.joined("reasoning"), "Let me think.", "the reasoning frames")
    same((reply.reasoning, reply.text), ("Let me think.", "Done."), "the reply")


@promise("a call is announced, its arguments streamed, then given whole")
async def _call_frames(subject: ProviderSubject) -> None:
    listener = _Listener()
    answer = VendorAnswer(text=("One moment.",), calls=(FIRST, SECOND), usage=USAGE, stop="tool_calls")
    reply = await subject.answering(answer).stream(_request(), listener)
    same(reply.stop, "tool_calls", "why the answer ended")
    for planned in (FIRST, SECOND):
        frames = listener.of(planned.id)
        expect(frames, f"there are frames about {planned.id}: ids pass through")
        same(frames[0], {"kind": "tool-input-start", "id": planned.id, "name": planned.name}, "the first frame")
        whole = {"kind": "tool-input-available", "id": planned.id, "name": planned.name, "input": planned.input}
        same(frames[-1], whole, "the last frame")
        arguments = listener.joined("tool-input-delta", "delta", id=planned.id)
        same(json.loads(arguments or json.dumps(planned.input)), planned.input, "the streamed arguments")


@promise("calls and results pair: parallel calls keep their ids and their results are accepted")
async def _pairs(subject: ProviderSubject) -> None:
    asking = VendorAnswer(calls=(FIRST, SECOND), usage=USAGE, stop="tool_calls")
    provider = subject.answering(asking, VendorAnswer(text=("Both ", "are sent."), usage=USAGE))
    reply = await provider.stream(_request(), _Listener())
    same([(call.id, call.name, call.input) for call in reply.tool_calls], _triples(FIRST, SECOND), "the calls")
    answer = await provider.stream(_request(QUESTION, _with_results(reply)), _Listener())
    same(answer.text, "Both are sent.", "the answer after the results")


@promise("one id for two calls is told apart")
async def _repeated_ids(subject: ProviderSubject) -> None:
    twin = ReplyCall(id=FIRST.id, name=SECOND.name, input=SECOND.input)
    answer = VendorAnswer(calls=(FIRST, twin), usage=USAGE, stop="tool_calls")
    provider = subject.answering(answer, answer)
    listener = _Listener()
    reply = await provider.stream(_request(), listener)
    ids = [call.id for call in reply.tool_calls]
    same(ids, [FIRST.id, f"{FIRST.id}-2"], "the ids within one step")
    same([call.input for call in reply.tool_calls], [FIRST.input, SECOND.input], "the inputs, in order")
    expect(all(listener.of(call_id) for call_id in ids), "the frames carry the same ids as the reply")
    again = await provider.stream(_request(QUESTION, _with_results(reply)), _Listener())
    expect(not set(ids) & {call.id for call in again.tool_calls}, "ids are unique within what is shown")


@promise("malformed arguments are a call with the raw text")
async def _malformed(subject: ProviderSubject) -> None:
    broken = ReplyCall(id=FIRST.id, name=FIRST.name, input={"__raw": '{"number": 10'})
    answer = VendorAnswer(calls=(broken,), usage=USAGE, stop="tool_calls")
    reply = await subject.answering(answer).stream(_request(), _Listener())
    same(_triples(*reply.tool_calls), _triples(broken), "the call")


@promise("an answer without anything in it is a reply without anything in it")
async def _empty(subject: ProviderSubject) -> None:
    listener = _Listener()
    reply = await subject.answering(VendorAnswer(usage=USAGE)).stream(_request(), listener)
    same((reply.text, list(reply.tool_calls), listener.frames), ("", [], []), "the empty reply")


@promise("a length that was cut and a filter say so")
async def _stops(subject: ProviderSubject) -> None:
    stops: tuple[Stop, ...] = ("length", "filtered")
    for stop in stops:
        answer = VendorAnswer(text=("So far",), usage=USAGE, stop=stop)
        reply = await subject.answering(answer).stream(_request(), _Listener())
        same((reply.stop, reply.text), (stop, "So far"), "why the answer ended")


@promise("usage: input is the whole input, the cached parts are within it")
async def _usage(subject: ProviderSubject) -> None:
    said = Usage(input_tokens=1000, output_tokens=50, cache_read_tokens=800)
    reply = await subject.answering(VendorAnswer(text=("Yes.",), usage=said)).stream(_request(), _Listener())
    if reply.usage is None:
        raise ContractMismatch("usage that the vendor reported is in the reply")
    counts = (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cache_read_tokens)
    same(counts, (1000, 50, 800), "input, output, read from the cache")
    same(reply.usage.cache_write_1h_tokens or 0, 0, "nothing was written for an hour")


@promise("a set flag stops a silent vendor within a second")
async def _flag(subject: ProviderSubject) -> None:
    flag, listener = asyncio.Event(), _Listener()
    provider = subject.answering(VendorAnswer(text=("Wait",), ending="silence"))
    call = asyncio.ensure_future(provider.stream(_request(cancelled=flag), listener))
    await _heard(listener, call)
    flag.set()
    error = await _ends(call)
    expect(isinstance(error, Cancelled), f"a stopped call raises Cancelled, not {error!r}")


@promise("a cancelled task stops a silent vendor within a second")
async def _task(subject: ProviderSubject) -> None:
    listener = _Listener()
    provider = subject.answering(VendorAnswer(text=("Wait",), ending="silence"))
    call = asyncio.ensure_future(provider.stream(_request(), listener))
    await _heard(listener, call)
    call.cancel()
    await _ends(call)
    expect(call.cancelled(), "the cancellation passes through")


@promise("transient errors are marked, permanent ones are not, and neither tells a secret")
async def _errors(subject: ProviderSubject) -> None:
    wanted = {400: False, 401: False, 403: False, 404: False, 408: True, 429: True, 500: True, 503: True}
    for status, transient in wanted.items():
        error = await _fails(subject.answering(VendorAnswer(status=status)))
        same((error.status, error.transient), (status, transient), f"the error of status {status}")
        told = f"{error} {error.message} {error.args} {error.__cause__}"
        expect(subject.secret not in told, f"the error of status {status} does not tell the secret")


@promise("a connection cut in mid-answer is transient")
async def _cut(subject: ProviderSubject) -> None:
    error = await _fails(subject.answering(VendorAnswer(text=("Half an ",), ending="cut")))
    expect(error.transient, "half an answer is no answer, and may be asked for again")


def _triples(*calls: ReplyCall) -> list[tuple[str, str, object]]:
    return [(call.id, call.name, call.input) for call in calls]


async def _fails(provider: ModelProvider) -> ModelError:
    try:
        reply = await provider.stream(_request(), _Listener())
    except ModelError as error:
        return error
    raise ContractMismatch(f"a ModelError was due, and this came: {reply}")


async def _heard(listener: _Listener, call: asyncio.Future[Reply]) -> None:
    first = asyncio.ensure_future(listener.heard.wait())
    waiting: set[asyncio.Future[Any]] = {first, call}
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    first.cancel()
    if call.done():
        raise ContractMismatch(f"the call was over before it could be stopped: {call}")


async def _ends(call: asyncio.Future[Reply]) -> BaseException | None:
    """How a stopped call ended; it has a second for that."""
    done, _ = await asyncio.wait({call}, timeout=STOPS_WITHIN)
    expect(done, f"a stopped call is over within {STOPS_WITHIN} s")
    if call.cancelled():
        return None
    error = call.exception()
    expect(error, "a stopped call does not answer")
    return error
