"""What a sink promises about what it keeps, and for how long."""

from __future__ import annotations

from agent.db import in_db
from agent.sinks.base import FrameSink
from agent.testing.contracts.base import same
from agent.testing.contracts.rows import completed, new_run
from agent.testing.contracts.sink_subject import (
    RUN,
    TTL,
    SinkCase,
    SinkSubject,
    followed,
    numbers,
    other_process,
    sink_case,
    title,
    told,
    written,
)

SINK_KEEPING: list[SinkCase] = []


@sink_case("11 a stream is there for other processes too, until it is closed", SINK_KEEPING, processes=2)
async def _there(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    other, sink = other_process(subject), subject.make()
    same([await in_db(sink.has, RUN), other.ask("has", run=RUN)], [False, False], "before")
    await written(sink.open(RUN, 1), title("a"))
    same([await in_db(sink.has, RUN), other.ask("has", run=RUN)], [True, True], "written")
    await in_db(sink.close, RUN)
    same([await in_db(sink.has, RUN), other.ask("has", run=RUN)], [False, False], "closed")


async def _stale(subject: SinkSubject, sink: FrameSink) -> None:
    """Two old streams, ended and crashed, and one whose last write is not old."""
    for run_id in ("ended", "crashed", "live"):
        await in_db(new_run, subject.store, run_id)
        await written(sink.open(run_id, 1), title("a"))
    await sink.open("ended", 1).end()
    await in_db(subject.store.record_run_end, "ended", completed())
    subject.clock.advance(TTL - 1)
    await written(sink.open("live", 1), title("b"))
    subject.clock.advance(2)


@sink_case("12 a purge takes whole streams whose last write is too old, ended or not, and says how many", SINK_KEEPING)
async def _purge(subject: SinkSubject) -> None:
    sink = subject.make(ttl_seconds=TTL, auto_purge=False)
    await _stale(subject, sink)
    same(await in_db(sink.purge_expired), 2, "streams removed")
    same([await in_db(sink.has, each) for each in ("ended", "crashed", "live")], [False, False, True], "what is left")
    same(await in_db(sink.purge_expired), 0, "a second time")


@sink_case("13 without a TTL nothing is purged", SINK_KEEPING)
async def _kept(subject: SinkSubject) -> None:
    sink = subject.make(ttl_seconds=0)
    await _stale(subject, sink)
    same([await in_db(sink.purge_expired), await in_db(sink.has, "crashed")], [0, True], "what is left")


@sink_case("14 the end of a run purges old streams and keeps its own", SINK_KEEPING)
async def _auto_purge(subject: SinkSubject) -> None:
    await _stale(subject, subject.make(ttl_seconds=TTL, auto_purge=False))
    sink = subject.make(ttl_seconds=TTL)
    await in_db(new_run, subject.store)
    await sink.open(RUN, 1).end()
    same([await in_db(sink.has, each) for each in ("ended", RUN)], [False, True], "what is left")


@sink_case("18 a run that was parked for longer than the TTL goes on with higher numbers", SINK_KEEPING)
async def _parked(subject: SinkSubject) -> None:
    await in_db(new_run, subject.store)
    sink = subject.make(ttl_seconds=TTL, auto_purge=False)
    writer = sink.open(RUN, 1)
    await written(writer, title("a"), title("b"))
    writer.abandon()
    subject.clock.advance(TTL + 1)
    same([await in_db(sink.purge_expired), await in_db(sink.has, RUN)], [1, False], "purged")
    writer = sink.open(RUN, 2)
    await written(writer, title("c"))
    await writer.end()
    rows = await followed(sink)
    same([numbers(rows), told(rows)], [[3, 4], ["c", None]], "what is there then")
    same(numbers(await followed(sink, 2)), [3, 4], "for who had seen the first two")
