"""One socket from its handshake to its close: what is asked is answered in order, and never by the loop itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from agent.api.base import ActorAPIView
from agent.api.errors import answer_to, fault
from agent.db import in_request
from agent.domain.actor import Actor
from agent.errors import AgentError, Invalid, NotAuthenticated
from agent.flows.stream import attach
from agent.flows.threads import check_own
from agent.sockets import wire
from agent.sockets.acts import act
from agent.sockets.caller import Caller, Present, Scope
from agent.sockets.follows import Follows
from agent.sockets.leaving import told_when_leaving
from agent.sockets.messages import Asked, asked, read, ref_of
from agent.sockets.watches import Watches

P = ParamSpec("P")
T = TypeVar("T")

FAULT: Final = 1011
OWN_CODES: Final = 3000
NOBODY: Final = 4401
TOO_LARGE: Final = 4413
TOO_MANY: Final = 4429
MESSAGE_LIMIT: Final = 256 * 1024
UNANSWERED_MAX: Final = 32

logger = logging.getLogger("agent.sockets")


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketPace:
    """How often a socket is pinged, and how often one that only listens is asked who it is."""

    ping_seconds: float = 15
    look_seconds: float = 60


PACE: Final = SocketPace()


class Socket:
    """A task reads, one answers, one tends, one tells notices, and one follows each run, until one of them says so."""

    def __init__(
        self,
        scope: Scope,
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[dict[str, Any]], Awaitable[None]],
        pace: SocketPace,
    ) -> None:
        self._receive, self._raw_send, self._pace = receive, send, pace
        self._caller = Caller(scope)
        self._inbox: asyncio.Queue[str | None] = asyncio.Queue()
        self._unanswered = 0
        self._over: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self.follows = Follows(self.send)
        self.watches = Watches(self.send)

    async def serve(self) -> None:
        """Until the client leaves, is refused, or the server stops."""
        await self._receive()  # websocket.connect
        await self._raw_send({"type": "websocket.accept"})
        tasks = [asyncio.create_task(part()) for part in (self._read, self._work, self._tend, self.watches.tell)]
        for task in tasks:
            task.add_done_callback(self._ended)
        try:
            with told_when_leaving(self.end):
                code = await self._over
            if code is not None:
                await self._close(code)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.watches.close()
            await self.follows.close()

    async def send(self, text: str) -> None:
        """Say something, unless nobody is there any more."""
        if self._over.done():
            return
        try:
            await self._raw_send({"type": "websocket.send", "text": text})
        except OSError:  # the client is gone, and the server says so before it tells us
            self.end(None)

    def end(self, code: int | None) -> None:
        """Close with the code; None: it is closed."""
        if not self._over.done():
            self._over.set_result(code)

    async def ask(
        self,
        view: type[ActorAPIView],
        method: str,
        call: Callable[Concatenate[Actor, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Call a flow as whoever this is now, if the view that does the same over HTTP would let them."""

        def asking() -> T:
            present = self._caller.now()
            if present is None:
                raise NotAuthenticated
            present.admit(view, method)
            return call(present.actor, *args, **kwargs)

        return await in_request(asking)

    async def _close(self, code: int) -> None:
        """With the code; a server that sends none of the protocol's own for us (daphne) is given it 3000 higher."""
        try:
            await self._raw_send({"type": "websocket.close", "code": code})
        except Exception:
            if code >= OWN_CODES:
                raise
            await self._raw_send({"type": "websocket.close", "code": code + OWN_CODES})

    async def _read(self) -> None:
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                self.end(None)
                return
            text, data = message.get("text"), message.get("bytes")
            if len(data or b"") > MESSAGE_LIMIT or len(text or "") > MESSAGE_LIMIT or _bytes(text) > MESSAGE_LIMIT:
                self.end(TOO_LARGE)
                return
            self._unanswered += 1
            if self._unanswered > UNANSWERED_MAX:
                self.end(TOO_MANY)
                return
            self._inbox.put_nowait(text)

    async def _work(self) -> None:
        if await in_request(self._caller.now) is None:
            self.end(NOBODY)
            return
        while True:
            await self._answer(await self._inbox.get())
            self._unanswered -= 1

    async def _answer(self, text: str | None) -> None:
        message: Mapping[str, Any] = {}
        one: Asked | None = None
        try:
            if text is None:
                raise Invalid("Send JSON as text.")
            message = read(text)
            one = asked(message)
            await act(self, one)
        except NotAuthenticated:
            self.end(NOBODY)
        except Exception as error:
            answer = answer_to(error) or fault(f"{message.get('type')!r:.40} on a socket", error)
            run_id = None if one is None else one.values.get("runId")
            await self.send(wire.error(answer, ref=ref_of(message), run_id=run_id))

    async def _tend(self) -> None:
        """Keep the line alive; look now and then whether a socket that only listens still may."""
        looked = asyncio.get_running_loop().time()
        while True:
            await asyncio.sleep(self._pace.ping_seconds)
            await self.send(wire.say("ping"))
            now = asyncio.get_running_loop().time()
            if now - looked >= self._pace.look_seconds:
                looked = now
                await self._look()

    async def _look(self) -> None:
        if not self.follows.run_ids and not self.watches.thread_ids:
            return
        try:
            present = await in_request(self._caller.now)
            if present is None:
                self.end(NOBODY)
            else:
                await self._let_go(present)
        except Exception:  # the database is away, and with it what could be shown
            logger.exception("whether a socket may go on could not be looked up")

    async def _let_go(self, present: Present) -> None:
        """Stop showing what is not this actor's any more."""
        for run_id in self.follows.run_ids:
            if (refused := await _refusal(attach, present.actor, run_id)) is not None:
                await self.follows.end(run_id)
                await self.send(wire.error(wire.failed_run(refused), run_id=run_id))
        for thread_id in self.watches.thread_ids:
            if await _refusal(check_own, present.actor, thread_id) is not None:
                self.watches.end(thread_id)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a socket failed", exc_info=error)
            self.end(FAULT)


def _bytes(text: str | None) -> int:
    return 0 if text is None or len(text) * 4 <= MESSAGE_LIMIT else len(text.encode("utf-8", "surrogatepass"))


async def _refusal(check: Callable[[Actor, str], object], actor: Actor, of: str) -> AgentError | None:
    try:
        await in_request(check, actor, of)
    except AgentError as error:
        return error
    return None
