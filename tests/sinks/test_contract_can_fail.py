"""A sink that breaks one promise fails the case that states it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from agent.domain.snapshots import NumberedFrame
from agent.sinks.memory import MemorySink
from agent.sinks.pumped import PumpedSink, Speaker
from agent.sinks.writer import Aside, FrameWriter
from agent.testing import InMemoryStore
from agent.testing.contracts import ContractMismatch, SettableClock
from agent.testing.contracts.sinks import SINK_CONTRACT, SinkSubject

pytestmark = pytest.mark.once


class LosesErrors(MemorySink):
    def _append(self, run_id: str, speaker: Speaker, frames: Sequence[str | None], error: dict[str, Any] | None) -> int:
        return super()._append(run_id, speaker, frames, None)


class SharesNoText(MemorySink):
    def open(self, run_id: str, attempt: int, aside: Aside | None = None) -> FrameWriter:
        self._writers.clear()
        return super().open(run_id, attempt, aside)


class PurgesTooEarly(MemorySink):
    def purge_expired(self) -> int:
        gone = len(self._streams)
        self._streams.clear()
        return gone


class NeverCleansUp(MemorySink):
    def _appended(
        self, run_id: str, last: int | None, frames: Sequence[str | None], error: dict[str, Any] | None
    ) -> None:
        super()._appended(run_id, last, [*frames, "{}"], error)


class ReadsFromTheStart(MemorySink):
    def subscribe(self, run_id: str, after: int = 0) -> AsyncIterator[NumberedFrame]:
        return super().subscribe(run_id, 0)


class NumbersAnew(MemorySink):
    def purge_expired(self) -> int:
        gone = super().purge_expired()
        self._streams.clear()
        return gone


class ForgetsTheFence(MemorySink):
    def _begin(self, run_id: str, speaker: Speaker) -> None:
        super()._begin(run_id, speaker._replace(attempt=0))


class FencesNoDelegate(MemorySink):
    def _begin(self, run_id: str, speaker: Speaker) -> None:
        if speaker.run_id == run_id:
            super()._begin(run_id, speaker)


BROKEN: list[tuple[type[PumpedSink], str]] = [
    (LosesErrors, "04"),
    (SharesNoText, "10"),
    (PurgesTooEarly, "12"),
    (PurgesTooEarly, "13"),
    (NeverCleansUp, "14"),
    (ReadsFromTheStart, "15"),
    (NumbersAnew, "18"),
    (ForgetsTheFence, "21"),
    (FencesNoDelegate, "22"),
]


@pytest.mark.parametrize(("sink", "number"), BROKEN, ids=[f"{row[0].__name__} {row[1]}" for row in BROKEN])
def test_a_broken_promise_is_named(sink: type[PumpedSink], number: str) -> None:
    [case] = [case for case in SINK_CONTRACT if case.name.startswith(number)]
    store = InMemoryStore()
    store.clock = clock = SettableClock()
    streams: dict[str, Any] = {}
    made: list[PumpedSink] = []

    def make(**options: object) -> PumpedSink:
        one: Any = sink(store, **options)  # type: ignore[arg-type]
        one._streams = streams
        made.append(one)
        return made[-1]

    with pytest.raises(ContractMismatch):
        case.run(SinkSubject(make=make, store=store, clock=clock))
    for one in made:
        one.stop()
