"""Rows that wait while the server that keeps them is away: in order, a while, and no turn waits with them."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from agent.domain.ids import new_id
from agent.errors import LeaseLost
from agent.sinks.pumped import Speaker

RETRY_SECONDS: Final = 0.5
GIVE_UP_SECONDS: Final = 600.0

logger = logging.getLogger("agent.sinks")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """Rows of one write; `token` tells the server that it has them already, when its answer was lost."""

    run_id: str
    speaker: Speaker | None
    frames: Sequence[str | None]
    error: dict[str, Any] | None
    token: str
    since: float


class Outbox:
    """Sends at once; what the server does not take is kept, and with it all that follows for the run."""

    def __init__(
        self,
        send: Callable[[Parcel], int],
        sent: Callable[[Parcel, int], None],
        *,
        away: tuple[type[Exception], ...],
    ) -> None:
        self._send, self._sent, self._away = send, sent, away
        self._waiting: dict[str, deque[Parcel]] = {}
        self._lost: set[str] = set()  # runs with a gap: nothing is stored behind it
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def put(
        self, run_id: str, speaker: Speaker | None, frames: Sequence[str | None], error: dict[str, Any] | None
    ) -> int | None:
        """Send rows and answer the last number; None when they wait."""
        now = time.monotonic()
        parcel = Parcel(run_id=run_id, speaker=speaker, frames=frames, error=error, token=new_id(), since=now)
        with self._lock:
            if run_id in self._lost:
                return None
            if (queue := self._waiting.get(run_id)) is not None:
                queue.append(parcel)
                return None
        try:
            return self._send(parcel)
        except self._away:
            self._keep(parcel)
            return None

    def _keep(self, parcel: Parcel) -> None:
        with self._lock:
            self._waiting.setdefault(parcel.run_id, deque()).append(parcel)
            if self._thread is None:
                logger.warning("frames cannot be stored at the moment; they are kept and sent later")
                self._thread = threading.Thread(target=self._serve, name="agent-outbox", daemon=True)
                self._thread.start()

    def _serve(self) -> None:
        while True:
            time.sleep(RETRY_SECONDS)
            try:
                for run_id in tuple(self._waiting):
                    self._deliver(run_id)
            except self._away:
                self._give_up()
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return

    def _deliver(self, run_id: str) -> None:
        queue = self._waiting[run_id]
        while True:
            with self._lock:
                if not queue:
                    del self._waiting[run_id]
                    return
                parcel = queue[0]
            with suppress(LeaseLost):  # another worker speaks for the run now
                self._sent(parcel, self._send(parcel))
            with self._lock:
                queue.popleft()

    def _give_up(self) -> None:
        too_old = time.monotonic() - GIVE_UP_SECONDS
        with self._lock:
            for run_id in [each for each, queue in self._waiting.items() if queue[0].since < too_old]:
                logger.error("the frames of run %s could not be stored; its conversation is whole", run_id)
                del self._waiting[run_id]
                self._lost.add(run_id)
