"""One model call through the library's direct streaming interface."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelResponseStreamEvent
from pydantic_ai.models import StreamedResponse

from agent.domain.model_calls import CancelFlag, FrameEmitter, Json, ModelRequest, NeverCancelled, Reply, Usage
from agent.errors import Cancelled
from agent.providers._library import errors, requests
from agent.providers._library.clients import Clients, Endpoint, known_vendor
from agent.providers._library.replies import Transcriber, cut_off, usage
from agent.providers.ids import used_ids

LOOK_AT_FLAG_EVERY = 0.1  # seconds, while the vendor says nothing

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The models of one `PydanticAIProvider`."""

    default: str | None
    settings: Mapping[str, Json]
    timeout: float | None
    finish_required: bool
    secrets: tuple[str, ...] = field(repr=False)
    clients: Clients

    @classmethod
    def over(cls, endpoint: Endpoint | None, **options: Json) -> Engine:
        """An engine with clients of its own."""
        return cls(clients=Clients(endpoint), **options)

    async def stream(self, request: ModelRequest, emit: FrameEmitter) -> Reply:
        """Make the call; see `PydanticAIProvider.stream`."""
        call = _Call(self, request, emit, _qualified(request.model, self.default))
        scope = asyncio.timeout(None)
        try:
            async with scope:
                with _ends_when_set(request.cancelled, scope):
                    return await call.run()
        except asyncio.CancelledError as stopped:
            stopped.usage = call.usage()  # type: ignore[attr-defined]  # for whoever writes the ledger
            raise
        except TimeoutError:
            if not scope.expired():
                raise
        raise Cancelled(usage=call.usage())


class _Call:
    def __init__(self, engine: Engine, request: ModelRequest, emit: FrameEmitter, name: str) -> None:
        self.engine = engine
        self.request = request
        self.name = name
        self.transcriber = Transcriber(emit, used_ids(request.messages))
        self.stream: StreamedResponse | None = None

    async def run(self) -> Reply:
        self._look_at_flag()
        async with AsyncExitStack() as stack:
            stream = self.stream = await self._ours(self._open(stack))
            events = aiter(stream)
            while (event := await self._ours(_next(events))) is not None:
                self._look_at_flag()
                self.transcriber.feed(event)
            reply = self._finish(stream)
        return reply  # noqa: RET504 - within the block, mypy thinks of a stack that swallows errors

    async def _open(self, stack: AsyncExitStack) -> StreamedResponse:
        request, engine = self.request, self.engine
        model = await engine.clients.model(self.name)
        wanted = requests.parameters(request, model)
        opening = model_request_stream(
            model,
            requests.messages(request, model, wanted),
            model_settings=requests.settings({**engine.settings, **request.settings}, engine.timeout, model),
            model_request_parameters=wanted,
        )
        return await stack.enter_async_context(opening)

    def _look_at_flag(self) -> None:
        if self.request.cancelled.is_set():
            raise Cancelled(usage=self.usage())

    async def _ours(self, work: Awaitable[Result]) -> Result:
        """What the library gives, or our error for what it raises: without the raw one, which may hold secrets."""
        fault: Exception
        try:
            return await work
        except Exception as error:  # whatever the library and its SDKs raise
            fault = error
        raise errors.translate(fault, self.name, [*self.engine.secrets, *_environment_secrets()], self.usage())

    def _finish(self, stream: StreamedResponse) -> Reply:
        response = stream.get()
        if self.engine.finish_required and cut_off(response, says_why=hasattr(stream, "_has_finish_reason")):
            raise errors.cut(self.name, usage(response))
        return self.transcriber.finish(response)

    def usage(self) -> Usage | None:
        """What the vendor has reported so far."""
        return usage(self.stream.get()) if self.stream is not None else None


def _environment_secrets() -> list[str]:
    """Keys that the library may have found by itself."""
    return [value for name, value in os.environ.items() if name.endswith(("_KEY", "_TOKEN", "_SECRET", "_PASSWORD"))]


async def _next(events: AsyncIterator[ModelResponseStreamEvent]) -> ModelResponseStreamEvent | None:
    return await anext(events, None)


@contextmanager
def _ends_when_set(flag: CancelFlag, scope: asyncio.Timeout) -> Iterator[None]:
    """End the scope soon after the flag is set, however silent the vendor is."""
    if isinstance(flag, NeverCancelled):
        yield
        return
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle | None = None

    def look() -> None:
        nonlocal timer
        if flag.is_set():
            scope.reschedule(loop.time())
        else:
            timer = loop.call_later(LOOK_AT_FLAG_EVERY, look)

    look()
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()


def _qualified(wanted: str | None, default: str | None) -> str:
    """A `provider:model` name; a bare name is a model of the default's vendor (`llama3:8b` is a bare name, too)."""
    name = wanted or default
    if name is None:
        raise errors.unnamed()
    prefix, colon, _ = name.partition(":")
    if (colon and known_vendor(prefix)) or default is None or name == default:
        return name
    return f"{default.partition(':')[0]}:{name}"
