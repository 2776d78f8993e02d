"""Turns, one at a time, through the code that a site runs: admission, inline runner, sink, follower."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Coroutine
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from agent.domain.actor import Actor
from agent.flows.admission import Admitted, chat
from agent.flows.starts import Send
from agent.flows.stream import follow
from agent.store import get_store
from bench import runner
from bench.agents import DELTAS, QUESTION, SMALL_DELTAS, SMALL_QUESTION

T = TypeVar("T")

ACTOR = Actor("alice")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What is asked, and what has to come of it."""

    question: str
    roles: tuple[str, ...]  # of the messages; a call and its result are in the message that made the call
    words: int


BIG = Kind(question=QUESTION, roles=("user", "assistant", "assistant"), words=2 * DELTAS)
SMALL = Kind(question=SMALL_QUESTION, roles=("user", "assistant"), words=SMALL_DELTAS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Seconds from the call of `submit`; `cpu` is that of this whole process, the server's is not in it."""

    admitted: float
    first: float | None  # the first frame that a follower saw
    terminal: float | None  # the end of the stream, as a follower saw it
    settled: float  # the run settled and its terminal frame stored
    cpu: float

    def to_json(self) -> dict[str, float | None]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a follower got, and when."""

    first: float
    terminal: float
    frames: list[str]

    @property
    def text(self) -> str:
        told = [json.loads(frame) for frame in self.frames]
        return "".join(frame["text"] for frame in told if frame["kind"] == "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A turn that was measured and is not yet checked."""

    kind: Kind
    admitted: Admitted
    seen: Seen | None
    sample: Sample

    def check(self) -> None:
        """The turn did what it is measured for: everything is stored, and the follower saw it."""
        store = get_store()
        run, detail = store.get_run(self.admitted.run_id), store.get_thread(self.admitted.thread_id)
        assert run is not None, "the run is gone"
        assert detail is not None, "the thread is gone"
        assert run.status == "completed", (run.status, run.error_message)
        assert tuple(message.role for message in detail.messages) == self.kind.roles, detail.messages
        answers = [message for message in detail.messages if message.role == "assistant"]
        assert sum(len(message.content.split()) for message in answers) == self.kind.words, answers
        assert len(store.usage_of_run(run.id)) == len(answers), "a ledger row a model call"
        assert self.seen is None or len(self.seen.text.split()) == self.kind.words, self.seen


class Turns:
    """A process that serves turns; followers live on a loop of their own, as in a server."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="bench-server", daemon=True).start()

    def run(self, kind: Kind, *, followed: bool) -> Done:
        """One turn on a fresh thread, to its end."""
        send = Send(message=kind.question, agent="bench")
        cpu, start = time.process_time(), time.perf_counter()
        admitted = chat(ACTOR, send)
        returned = time.perf_counter()
        seen = self.on_loop(_follow(admitted.run_id)) if followed else None
        settled = _wait_for_end(admitted.run_id)
        sample = Sample(
            admitted=returned - start,
            first=seen.first - start if seen else None,
            terminal=seen.terminal - start if seen else None,
            settled=settled - start,
            cpu=time.process_time() - cpu,
        )
        return Done(kind=kind, admitted=admitted, seen=seen, sample=sample)

    def again(self, thread_id: str) -> Sample:
        """One more small turn of the agent that remembers, without a follower."""
        send = Send(message=SMALL_QUESTION, agent="memory", thread_id=thread_id)
        cpu, start = time.process_time(), time.perf_counter()
        admitted = chat(ACTOR, send)
        returned = time.perf_counter()
        settled = _wait_for_end(admitted.run_id)
        cpu = time.process_time() - cpu
        run = get_store().get_run(admitted.run_id)
        assert run is not None, "the run is gone"
        assert run.status == "completed", (run.status, run.error_message)
        return Sample(admitted=returned - start, first=None, terminal=None, settled=settled - start, cpu=cpu)

    def on_loop(self, work: Coroutine[Any, Any, T]) -> T:
        """Let the followers' loop do it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)


async def _follow(run_id: str) -> Seen:
    first = 0.0
    frames: list[str] = []
    async for frame in follow(run_id):
        first = first or time.perf_counter()
        frames.append(frame.frame or "")
    return Seen(first=first, terminal=time.perf_counter(), frames=frames)


def _wait_for_end(run_id: str) -> float:
    while True:
        ended, instant = runner.ended.get(timeout=60)
        if ended == run_id:
            return instant
