"""Telling clients that the server goes, with 1001, while it still serves.

uvicorn closes sockets with a code of its own before any application is told, and daphne drops them without a word. So
the signal that stops the process is looked at first, from the first socket on, and passed on a moment later.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any, Final

GOING_AWAY: Final = 1001
WRITING_SECONDS: Final = 0.3  # for the closes to leave
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

Close = Callable[[int], None]
Handler = Callable[[int, FrameType | None], Any]

_closes: set[Close] = set()
_looking = False


@contextmanager
def told_when_leaving(close: Close) -> Iterator[None]:
    """Within the block, `close(1001)` is called on this loop when the process is asked to end."""
    _look()
    _closes.add(close)
    try:
        yield
    finally:
        _closes.discard(close)


def _look() -> None:
    global _looking
    if _looking or threading.current_thread() is not threading.main_thread():
        return  # only the main thread has signals
    _looking = True
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        handler = signal.getsignal(number)
        if callable(handler):
            signal.signal(number, partial(_asked_to_end, loop, handler))


def _asked_to_end(loop: asyncio.AbstractEventLoop, handler: Handler, number: int, frame: FrameType | None) -> None:
    if not _closes or loop.is_closed():
        handler(number, frame)
        return
    loop.call_soon_threadsafe(_close_all)
    loop.call_soon_threadsafe(loop.call_later, WRITING_SECONDS, handler, number, frame)


def _close_all() -> None:
    for close in tuple(_closes):
        close(GOING_AWAY)
