"""What a cancel, a hand-over and a lost lease act on while a run is being driven."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from agent.errors import Cancelled, LeaseLost

T = TypeVar("T")


class Driver:
    """One run being driven; its methods are called on the loop that drives it."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.cancelled = asyncio.Event()
        self.leaving = False
        self.released = False  # it goes on elsewhere
        self.asked_again = False  # handed over once more meanwhile
        self.broke_off = False  # an effect, in the middle
        self._lost = False
        self._effect: asyncio.Task[Any] | None = None
        self._finishes = False  # a cancel waits for the effect

    def cancel(self) -> None:
        """Stop at the next border, and break a model call off at once; a tool that runs finishes."""
        self.cancelled.set()
        if not self._finishes:
            self._break_off()

    def hand_over(self, *, now: bool = False) -> None:
        """Leave the run to another process: at its next border, or with what it is in broken off."""
        self.leaving = True
        if now:
            self._break_off()

    def lose(self) -> None:
        """The lease is another's: stop at once."""
        self._lost = True
        self._break_off()

    def border(self) -> None:
        """Between steps: `Cancelled` or `LeaseLost` when somebody asked for it."""
        if self._lost:
            raise LeaseLost
        if self.cancelled.is_set():
            raise Cancelled
        if self.leaving:
            raise LeaseLost

    async def abortable(self, effect: Coroutine[Any, Any, T], *, finishes: bool = False) -> T:
        """Run an effect that may be broken off; one that `finishes` not by a cancel."""
        task: asyncio.Task[T] = asyncio.get_running_loop().create_task(_harmless(effect))
        self._effect, self._finishes = task, finishes
        try:
            return await task
        except asyncio.CancelledError:
            self.border()
            me = asyncio.current_task()
            if me is not None and not me.cancelling():
                raise RuntimeError("The code of the host cancelled itself.") from None
            raise
        finally:
            self._effect = None

    def _break_off(self) -> None:
        if self._effect is not None:
            self.broke_off = True
            self._effect.cancel()


async def _harmless(effect: Coroutine[Any, Any, T]) -> T:
    """The effect; what would end the loop of every run (KeyboardInterrupt, SystemExit) fails this one alone."""
    try:
        return await effect
    except (Exception, asyncio.CancelledError):
        raise
    except BaseException as error:
        if getattr(error, "agent_signal", False):
            raise
        raise RuntimeError(f"{type(error).__name__}: {error}") from error
