"""The threads that one socket watches. Notices are hints: the same one twice, not yet sent, is sent once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from agent.sinks import notices
from agent.sockets import wire

THREADS_MAX: Final = 100


class Watches:
    def __init__(self, send: Callable[[str], Awaitable[None]]) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._threads: set[str] = set()
        self._untold: dict[tuple[str, str], None] = {}  # in the order in which they came
        self._news = asyncio.Event()

    @property
    def thread_ids(self) -> tuple[str, ...]:
        return tuple(self._threads)

    @property
    def full(self) -> bool:
        return len(self._threads) >= THREADS_MAX

    async def begin(self, thread_id: str) -> None:
        """From when this returns, each change of the thread is told."""
        if thread_id not in self._threads:
            self._threads.add(thread_id)
            await notices.watch(thread_id, self._take)

    def end(self, thread_id: str) -> None:
        self._threads.discard(thread_id)
        notices.unwatch(thread_id, self._take)

    def close(self) -> None:
        for thread_id in self.thread_ids:
            self.end(thread_id)

    async def tell(self) -> None:
        """Send notices as they come, for as long as the socket lives."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._untold:
                thread_id, reason = next(iter(self._untold))
                del self._untold[thread_id, reason]
                if thread_id in self._threads:
                    await self._send(wire.say("thread-changed", threadId=thread_id, reason=reason))

    def _take(self, thread_id: str, reason: str) -> None:
        """Called on any thread."""
        with suppress(RuntimeError):  # the loop has ended, and the socket with it
            self._loop.call_soon_threadsafe(self._note, thread_id, reason)

    def _note(self, thread_id: str, reason: str) -> None:
        self._untold[thread_id, reason] = None
        self._news.set()
