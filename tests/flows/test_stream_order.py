"""What is on the stream when: deltas before the record of their call, closing frames behind it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from agent.sinks.memory import here
from agent.sinks.writer import Done, FrameWriter


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
