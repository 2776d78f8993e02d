"""The runs that one socket follows, each by a task of its own, with the bounds that an SSE response has."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from agent.errors import AgentError
from agent.flows.following import Follower
from agent.flows.stream import follow
from agent.sinks.base import FellBehind
from agent.sockets import wire

RUNS_MAX: Final = 32

logger = logging.getLogger("agent.sockets")

Send = Callable[[str], Awaitable[None]]


class _Oversized(Exception):
    """A frame that does not fit in one message of a socket."""


class Follows:
    """Ending one ends a follower, never a run."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._tasks

    @property
    def run_ids(self) -> tuple[str, ...]:
        return tuple(self._tasks)

    @property
    def full(self) -> bool:
        return len(self._tasks) >= RUNS_MAX

    async def begin(self, run_id: str, after: int, first: str) -> None:
        """Say `first`, then what there is above `after` and what comes; a former follower of the run ends before."""
        await self.end(run_id)
        await self._send(first)
        task = asyncio.create_task(self._follow(run_id, after))
        self._tasks[run_id] = task
        task.add_done_callback(lambda _: self._forget(run_id, task))

    async def end(self, run_id: str) -> None:
        """When this returns no frame of the run is sent any more."""
        if (task := self._tasks.pop(run_id, None)) is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def close(self) -> None:
        for run_id in self.run_ids:
            await self.end(run_id)

    def _forget(self, run_id: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(run_id) is task:
            del self._tasks[run_id]

    async def _follow(self, run_id: str, after: int) -> None:
        """Frames, then `done` or the error that ended the run; or that the client has to attach again."""
        try:
            async with Follower(follow(run_id, after)) as follower:
                async for batch in follower:
                    for numbered in batch:
                        text = wire.frame(run_id, numbered)
                        if len(text) > wire.FRAME_MAX:
                            raise _Oversized
                        await self._send(text)
                        follower.wrote(len(text))
            last = wire.say("done", runId=run_id)
        except _Oversized:
            last = wire.error(wire.OVERSIZED, run_id=run_id)
        except FellBehind:
            last = wire.error(wire.COME_BACK, run_id=run_id)
        except AgentError as error:
            last = wire.error(wire.failed_run(error), run_id=run_id)
        except Exception:
            logger.exception("following %s broke", run_id)
            last = wire.error(wire.COME_BACK, run_id=run_id)
        await self._send(last)
