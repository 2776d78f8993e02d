"""Joining a run's stream: whose it is, and what is there."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, nullcontext
from dataclasses import dataclass

from agent.domain.actor import Actor
from agent.domain.snapshots import NumberedFrame
from agent.domain.states import TERMINAL_RUN
from agent.errors import NotAllowed, NotFound, StreamFailed
from agent.sinks import get_sink
from agent.store import get_store

GENERIC = "Something went wrong while answering. Please try again."


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamScope:
    run_id: str
    thread_id: str


def attach(actor: Actor, run_id: str) -> StreamScope:
    """The stream of an own run that is open, or whose frames are still there; `stream_not_found` else."""
    scope = get_store().run_scope(run_id)
    if scope is None:
        raise NotFound(code="stream_not_found")
    if not actor.same_as(scope.owner):
        raise NotAllowed
    if scope.stream_run_id != run_id:
        raise NotFound(code="stream_not_found")  # an awaited delegate speaks in its parent's stream
    thread = get_store().thread_scope(scope.thread_id)
    if thread is None or thread.deleted:
        raise NotFound(code="stream_not_found")
    if scope.status in TERMINAL_RUN and not get_sink().has(run_id):
        raise NotFound("The stream is no longer kept; reload the conversation.", code="stream_not_found")
    return StreamScope(run_id=run_id, thread_id=scope.thread_id)


async def follow(run_id: str, after: int = 0) -> AsyncIterator[NumberedFrame]:
    """Frames above `after`, then what comes; ends after the run did. Raises `StreamFailed` when it failed."""
    rows = get_sink().subscribe(run_id, after)
    async with aclosing(rows) if isinstance(rows, AsyncGenerator) else nullcontext():
        async for row in rows:
            if not row.terminal:
                yield row
            elif row.error is not None:
                raise StreamFailed(row.error.get("message") or GENERIC, code=row.error["code"])
