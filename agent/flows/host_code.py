"""A host's function on its way to a value: a plain one on a thread of its own, an async one on the loop.

What it raises is a value here: an exception would not cross every thread and future unharmed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

from agent.db import in_tool

T = TypeVar("T")


async def ended(call: Callable[[], object], then: Callable[[object], T], *, runs_async: bool) -> T | BaseException:
    """What `then` makes of the answer, or what was raised; only the run's own signals pass through as exceptions."""
    if runs_async:
        return await _awaited(call, then)
    done = await in_tool(_called, call, then)
    if isinstance(done, _Later):  # a plain function that answers a coroutine
        return await _awaited(lambda: done.value, then)
    return done


def unless_signal(error: BaseException) -> BaseException:
    """The error; a signal of the run itself goes on."""
    if getattr(error, "agent_signal", False):
        raise error
    return error


class _Later(NamedTuple):
    value: Awaitable[object]


def _called(call: Callable[[], object], then: Callable[[object], T]) -> T | BaseException | _Later:
    try:
        answer = call()
        return _Later(answer) if isinstance(answer, Awaitable) else then(answer)
    except BaseException as error:
        return unless_signal(error)


async def _awaited(start: Callable[[], object], then: Callable[[object], T]) -> T | BaseException:
    try:
        answer = start()
        if isinstance(answer, Awaitable):
            answer = await answer
        return then(answer)
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return unless_signal(error)
