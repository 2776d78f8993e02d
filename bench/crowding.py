"""A crowd of turns in this process, started evenly over some seconds, as requests would come."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass

from agent.db import in_db
from agent.flows.admission import chat
from agent.flows.starts import Send
from agent.flows.stream import follow
from agent.store import get_store
from bench.agents import PACED_DELTAS, PACED_QUESTION
from bench.turns import ACTOR


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Seconds from the send: the first text, and the end of the stream, as a follower saw them."""

    run_id: str
    first: float
    settled: float
    words: int

    def check(self) -> None:
        """It ended well, and its follower saw all of it."""
        run = get_store().get_run(self.run_id)
        assert run is not None, "the run is gone"
        assert (run.status, self.words) == ("completed", PACED_DELTAS), (run.status, run.error_message, self.words)


async def crowd(turns: int, over: float) -> list[Turn]:
    """All of them to their ends."""
    return await asyncio.gather(*(_after(number * over / turns) for number in range(turns)))


async def _after(seconds: float) -> Turn:
    await asyncio.sleep(seconds)
    began = time.perf_counter()
    admitted = await in_db(chat, ACTOR, Send(message=PACED_QUESTION, agent="bench"))
    first, words = 0.0, 0
    async for row in follow(admitted.run_id):
        frame = json.loads(row.frame or "{}")
        if frame.get("kind") == "text":
            first = first or time.perf_counter() - began
            words += len(frame["text"].split())
    return Turn(run_id=admitted.run_id, first=first, settled=time.perf_counter() - began, words=words)
