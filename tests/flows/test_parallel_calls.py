"""B38: calls that run beside each other and end in another order: each frame is of its call, begun before it ends."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable

import pytest

from agent.providers.scripted import ScriptedReply, call
from agent.registry import agent, tool
from tests.flows.conftest import Site

MakeSite = Callable[..., Site]


@pytest.mark.parametrize("order", [(3, 2, 1), (2, 3, 1), (1, 2, 3)], ids=str)
def test_each_call_is_announced_given_whole_and_ended_in_the_order_of_the_calls(
    site: MakeSite, order: tuple[int, ...]
) -> None:
    ended: list[int] = []

    @tool
    async def look(number: int) -> int:
        """Look a number up, once those before it in the order are done."""
        before = set(order[: order.index(number)])
        async with asyncio.timeout(20):
            while not before <= set(ended):  # noqa: ASYNC110 - it comes true in a sibling
                await asyncio.sleep(0)
        ended.append(number)
        if number == 2:
            raise ValueError(number)
        return number * 10

    calls = [call("look", f"c{number}", number=number) for number in (1, 2, 3)]
    desk = site([ScriptedReply("One moment.", calls=calls), "Done."])
    agent(name="desk", prompt="You help.", tools=[look])(type("Desk", (), {}))
    run = desk.turn(agent="desk")
    assert (run.status, tuple(ended)) == ("completed", order)
    asking = desk.messages(run.thread_id)[1]
    ids = [one["id"] for one in asking.tool_calls or ()]
    results = [(one["id"], one.get("output")) for one in asking.tool_results or ()]
    assert results == [(ids[0], 10), (ids[1], None), (ids[2], 30)]

    told: dict[str, list[str]] = defaultdict(list)
    frames = desk.frames(run.id)
    for frame in frames:
        if "id" in frame:
            told[frame["id"]].append(frame["kind"])
    assert list(told) == ids
    for call_id, kinds in told.items():
        whole = kinds.index("tool-input-available")
        assert set(kinds[:whole]) <= {"tool-input-start", "tool-input-delta"}
        assert kinds[whole + 1 :] == ["tool-output-error" if call_id == ids[1] else "tool-output"]
    outputs = [frame["id"] for frame in frames if str(frame.get("kind")).startswith("tool-output")]
    assert outputs == ids  # recorded, and so told, in call order whatever came first
