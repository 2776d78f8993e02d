"""Our ids: UUIDv7 (RFC 9562) as lower-case text, rising within a process, so that inserts stay local."""

from __future__ import annotations

import os
import threading
import time
import uuid

COUNTER_BITS = 42  # as RFC 9562 §6.2 method 1: a counter seeded at random in each new millisecond, then counting up
TAIL_BITS = 32
_VERSION = 0x7 << 76
_VARIANT = 0b10 << 62
_LOW_30 = (1 << 30) - 1


class IdSource:
    """Each id sorts after the one before, also when the clock stands still or goes back."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: a forked child must not count on from its parent's counter, nor wait for its lock."""
        self._lock = threading.Lock()
        self._millis = -1
        self._counter = 0

    def next(self, millis: int | None = None) -> str:
        """The next id, at this instant or at the given one."""
        entropy = int.from_bytes(os.urandom(10))
        with self._lock:
            self._advance(time.time_ns() // 1_000_000 if millis is None else millis, entropy >> TAIL_BITS)
            millis, counter = self._millis, self._counter
        return str(uuid.UUID(int=_layout(millis, counter, entropy & ((1 << TAIL_BITS) - 1))))

    def _advance(self, now: int, seed: int) -> None:
        seed &= (1 << (COUNTER_BITS - 1)) - 1  # the top bit is left free, so there is always room to count
        if now > self._millis:
            self._millis, self._counter = now, seed
            return
        self._counter += 1
        if self._counter >> COUNTER_BITS:
            self._millis, self._counter = self._millis + 1, seed


def _layout(millis: int, counter: int, tail: int) -> int:
    high = millis << 80 | _VERSION | counter >> 30 << 64
    return high | _VARIANT | (counter & _LOW_30) << TAIL_BITS | tail


_source = IdSource()
os.register_at_fork(after_in_child=_source.forget)


def new_id() -> str:
    """A new id: time-ordered, 36 characters."""
    return _source.next()
