"""Hearing the groups of watched threads: one channel of the layer a process, on a thread with a loop of its own.

A layer keeps its connections by loop, and a socket that watches must not die with the layer.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from channels.layers import BaseChannelLayer

from agent.sinks.broadcast import own_layer, shared_layer

RETRY_SECONDS = 2

log = logging.getLogger("agent.notices")


def group_of(thread_id: str) -> str:
    """The group of a thread; a layer takes fewer characters than an id may have."""
    return f"agent.thread.{hashlib.sha256(thread_id.encode()).hexdigest()}"


class Listener:
    """Stays in the groups of whatever `wanted` answers, and passes on what is said there; tries again for ever."""

    def __init__(self, wanted: Callable[[], set[str]], hear: Callable[[dict[str, Any]], None]) -> None:
        self._wanted, self._hear = wanted, hear
        self._loop = asyncio.new_event_loop()
        self._changed = asyncio.Event()
        self._waiting: list[tuple[str, Future[None]]] = []
        self._over = False
        self._thread = threading.Thread(target=self._serve, name="agent-notices", daemon=True)
        self._thread.start()

    def look(self) -> None:
        """What is wanted has changed."""
        self._on_loop(self._changed.set)

    async def joined(self, thread_id: str, seconds: float) -> bool:
        """Wait until the group of a wanted thread is heard; False when that took longer."""
        heard: Future[None] = Future()
        self._on_loop(self._waiting.append, (thread_id, heard))
        self.look()
        try:
            await asyncio.wait_for(asyncio.wrap_future(heard), seconds)
        except TimeoutError:
            return False
        return True

    def stop(self) -> None:
        self._over = True
        self.look()
        self._thread.join(timeout=5)

    def _on_loop(self, call: Callable[..., object], *args: object) -> None:
        with suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(call, *args)

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._stay())

    async def _stay(self) -> None:
        failing = False
        while not self._over:
            try:
                if shared_layer() is not None:
                    await self._listen(own_layer())
                failing = False
            except Exception:
                if not failing:
                    log.warning("notices of other processes are not heard at the moment", exc_info=True)
                failing = True
            if not self._over:
                await asyncio.sleep(RETRY_SECONDS)

    async def _listen(self, layer: BaseChannelLayer) -> None:
        channel = await layer.new_channel()
        hearing = asyncio.create_task(self._receive(layer, channel))
        joined: set[str] = set()
        try:
            while not self._over and not hearing.done():
                self._changed.clear()
                wanted = self._wanted()
                for thread_id in wanted - joined:
                    await layer.group_add(group_of(thread_id), channel)
                for thread_id in joined - wanted:
                    await layer.group_discard(group_of(thread_id), channel)
                joined = wanted
                self._tell_waiting(joined)
                await self._either(hearing)
            if hearing.done():
                await hearing  # raises what ended it
        finally:
            hearing.cancel()

    async def _receive(self, layer: BaseChannelLayer, channel: str) -> None:
        while True:
            self._hear(await layer.receive(channel))

    async def _either(self, hearing: asyncio.Task[None]) -> None:
        changed = asyncio.create_task(self._changed.wait())
        await asyncio.wait({changed, hearing}, return_when=asyncio.FIRST_COMPLETED)
        changed.cancel()

    def _tell_waiting(self, joined: set[str]) -> None:
        for thread_id, heard in self._waiting:
            if thread_id in joined and not heard.cancelled():
                heard.set_result(None)
        self._waiting = [(thread_id, heard) for thread_id, heard in self._waiting if not heard.done()]
