"""What is on the stream when: deltas before the record of their call, closing frames behind it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import pytest

from agent.sinks.memory import here
from agent.sinks.writer import Done, FrameWriter, Run

P = ParamSpec("P")
T = TypeVar("T")


def tell(order: list[str], outcome: Done[str] | Exception) -> None:
    """Note in which order a piece of text, a unit of work and its closing frames come about."""

    def append(frames: Sequence[str | None], error: dict[str, Any] | None) -> None:
        order.extend("end" if frame is None else json.loads(frame)["kind"] for frame in frames)

    def work() -> Done[str]:
        order.append("(commit)")
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def play() -> None:
        writer = FrameWriter(append, run=here)
        writer.write({"kind": "text", "text": "Hello"})
        assert await writer.behind(here, work) == "done"

    asyncio.run(play())


def test_what_was_said_is_stored_before_the_commit_and_what_that_makes_true_behind_it() -> None:
    order: list[str] = []
    tell(order, Done("done", [{"kind": "step-finish"}], ended=True))
    assert order == ["text", "(commit)", "step-finish", "end"]


def test_what_was_said_stays_when_the_unit_fails() -> None:
    order: list[str] = []
    with pytest.raises(ZeroDivisionError):
        tell(order, ZeroDivisionError())
    assert order == ["text", "(commit)"]


def test_after_a_write_that_failed_nothing_more_is_stored() -> None:
    stored: list[str | None] = []
    failing = asyncio.Event()

    def append(frames: Sequence[str | None], error: dict[str, Any] | None) -> None:
        if not failing.is_set():
            failing.set()
            raise OSError("the disk is away")
        stored.extend(frames)

    async def play() -> None:
        writer = FrameWriter(append, run=here)
        writer.write({"kind": "step-start"})
        await failing.wait()
        with pytest.raises(OSError, match="away"):
            writer.write({"kind": "text", "text": "said to nobody"})
        with pytest.raises(OSError, match="away"):
            await writer.behind(here, lambda: Done("never"))
        with pytest.raises(OSError, match="away"):
            await writer.end()

    asyncio.run(play())
    assert stored == []


def test_what_was_said_while_a_write_failed_is_not_stored_behind_the_gap() -> None:
    stored: list[str | None] = []
    tries: list[int] = []

    async def slowly(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        await asyncio.sleep(0)
        return call(*args, **kwargs)

    def append(frames: Sequence[str | None], error: dict[str, Any] | None) -> None:
        tries.append(len(frames))
        if len(tries) == 1:
            raise OSError("the disk is away")
        stored.extend(frames)

    async def play() -> None:
        writer = FrameWriter(append, run=slowly, flush_ms=0)
        writer.write({"kind": "step-start"})
        await asyncio.sleep(0)  # the write is under way
        writer.write({"kind": "text", "text": "on the way"})
        with pytest.raises(OSError, match="away"):
            await writer.behind(slowly, lambda: Done("never"))
        for _ in range(3):  # whatever is still to come
            await asyncio.sleep(0)

    asyncio.run(play())
    assert (tries, stored) == ([1], [])


def test_only_text_that_was_gathered_lets_others_go_first() -> None:
    stored: list[tuple[str, str]] = []

    def by(name: str) -> Run:
        async def run(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
            stored.append((name, ""))
            return call(*args, **kwargs)

        return run

    def append(frames: Sequence[str | None], error: dict[str, Any] | None) -> None:
        told = " ".join("end" if frame is None else str(json.loads(frame).get("text", "frame")) for frame in frames)
        stored[-1] = (stored[-1][0], told)

    async def play() -> None:
        writer = FrameWriter(append, run=by("soon"), later=by("later"), flush_ms=1)
        writer.write({"kind": "step-start"})
        writer.write({"kind": "text", "text": "first"})
        await writer.flush()
        writer.write({"kind": "text", "text": "second"})
        await writer.flush()
        writer.write({"kind": "text", "text": "third"})
        writer.write({"kind": "ui"})
        await writer.end()

    asyncio.run(play())
    assert stored == [("soon", "frame first"), ("later", "second"), ("soon", "third frame end")]
