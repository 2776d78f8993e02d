"""What the contract of sinks is shown on, and how its cases write and read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agent.domain.snapshots import NumberedFrame
from agent.sinks.base import FrameSink
from agent.sinks.writer import FrameWriter
from agent.store.base import AgentStore
from agent.testing.contracts.base import Case, ContractMismatch
from agent.testing.contracts.store import SettableClock

RUN = "run-1"
TTL = 100
LONG_MS = 60_000
SECONDS = 30  # a case that waits longer has failed
FIRST = {"kind": "step-start"}


class Elsewhere(Protocol):
    """A second process on the same sink, such as `agent.testing.sink_process.OtherProcess`."""

    def ask(self, do: str, **fields: object) -> Any: ...  # noqa: ANN401
    def answer(self) -> Any: ...  # noqa: ANN401


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSubject:
    """A sink to be shown: `make` one with these options, on the subject's storage, which is empty at first.

    `elsewhere` makes the second process use these options too; None for a sink of one process. `pushes` says whether
    wake-ups between processes are pushed.
    """

    make: Callable[..., FrameSink]
    store: AgentStore
    clock: SettableClock
    elsewhere: Callable[..., Elsewhere] | None = None
    pushes: bool = True


SinkCase = Case[SinkSubject]
Play = Callable[[SinkSubject], Coroutine[Any, Any, None]]


def sink_case(name: str, cases: list[SinkCase], *, processes: int = 1) -> Callable[[Play], Play]:
    """Add a case; one of two processes holds by itself for a sink of one."""

    def decorate(play: Play) -> Play:
        def run(subject: SinkSubject) -> None:
            if processes == 1 or subject.elsewhere is not None:
                asyncio.run(_in_time(play(subject)))

        cases.append(Case(name, run))
        return play

    return decorate


async def _in_time(case: Coroutine[Any, Any, None]) -> None:
    try:
        await asyncio.wait_for(case, SECONDS)
    except TimeoutError as error:
        raise ContractMismatch(f"somebody waits for longer than {SECONDS} seconds") from error


def other_process(subject: SinkSubject, **options: object) -> Elsewhere:
    assert subject.elsewhere is not None
    return subject.elsewhere(**options)


def title(text: object) -> dict[str, Any]:
    return {"kind": "title", "title": str(text)}


def text(delta: str) -> dict[str, Any]:
    return {"kind": "text", "text": delta}


async def written(writer: FrameWriter, *frames: Mapping[str, Any]) -> None:
    for frame in frames:
        writer.write(dict(frame))
    await writer.flush()


async def followed(sink: FrameSink, after: int = 0, run_id: str = RUN) -> list[NumberedFrame]:
    return [row async for row in sink.subscribe(run_id, after)]


def told(rows: Sequence[NumberedFrame]) -> list[Any]:
    """What the rows say: a text, a title, a kind, None for the end."""
    frames = [None if row.frame is None else json.loads(row.frame) for row in rows]
    return [frame and (frame.get("text") or frame.get("title") or frame["kind"]) for frame in frames]


def numbers(rows: Sequence[NumberedFrame]) -> list[int]:
    return [row.seq for row in rows]


async def let_go(rows: AsyncIterator[NumberedFrame]) -> None:
    close = getattr(rows, "aclose", None)
    if close is not None:
        await close()
