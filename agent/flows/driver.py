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
        self._lost = False
        self._effect: asyncio.Task[Any] | None = None

    def cancel(self) -> None:
        """Stop at the next border, and break a model call off at once."""
        self.cancelled.set()
        if self._effect is not None:
            self._effect.cancel()

    def hand_over(self, *, now: bool = False) -> None:
        """Leave the run to another process: at its next border, or with its model call broken off."""
        self.leaving = True
        if now and self._effect is not None:
            self._effect.cancel()

    def lose(self) -> None:
        """The lease is another's: stop at once."""
        self._lost = True
        if self._effect is not None:
            self._effect.cancel()

    def border(self) -> None:
        """Between steps: `Cancelled` or `LeaseLost` when somebody asked for it."""
        if self._lost:
            raise LeaseLost
        if self.cancelled.is_set():
            raise Cancelled
        if self.leaving:
            raise LeaseLost

    async def abortable(self, effect: Coroutine[Any, Any, T]) -> T:
        """Run an effect that `cancel` and `lose` may break off."""
        task: asyncio.Task[T] = asyncio.get_running_loop().create_task(effect)
        self._effect = task
        try:
            return await task
        except asyncio.CancelledError:
            self.border()
            raise
        finally:
            self._effect = None
