"""A model that answers at once, or when the test makes the file that the message names."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from agent.domain.model_calls import ModelRequest
from agent.errors import ModelError
from agent.providers.scripted import Answer, ScriptedProvider, ScriptedReply, call


async def answer(request: ModelRequest) -> Answer:
    last = request.messages[-1]
    word, _, rest = last.content.partition(" ")
    if last.role == "assistant" and last.tool_results:
        return "It was sent."
    if word == "order" and request.tools:
        return ScriptedReply(calls=[call("look_up_order", number=1042)])
    if word == "hold":
        await asyncio.to_thread(_wait_for, Path(rest))
        return "At last."
    if word == "count":
        return ScriptedReply(" ".join(map(str, range(1, int(rest) + 1))), delay_ms=1)
    if word == "big":
        number, size = map(int, rest.split())
        return ScriptedReply("Done.", reasoning=" ".join("x" * size for _ in range(number)))
    if word == "fail":
        return ModelError("The vendor said no.")
    return "Hello there."


def _wait_for(gate: Path) -> None:
    while not gate.exists():
        time.sleep(0.01)


provider = ScriptedProvider(answer)
