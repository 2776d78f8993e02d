"""A worker that vanishes between two commits, and another one that goes on: the end is the same.

Whole processes that are really killed come with the durable runs; here the worker's thread of control is cut at each
unit of work of a turn with reasoning, two parallel reads (one fails) and a second step, before and after its commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from agent.domain.canonical import canonical_json
from agent.providers.scripted import ScriptedReply, call
from agent.registry import agent, tool
from agent.store import OrmStore
from tests.flows.conftest import Site

MakeSite = Callable[..., Site]
UNITS = 4  # start, llm:0, the two tools, llm:1 with the end


class Killed(BaseException):
    """The process is gone: nobody cleans up."""


class MortalStore(OrmStore):
    """Dies at the n-th unit of work that writes the journal."""

    def __init__(self) -> None:
        super().__init__()
        self.dies_at: int | None = None
        self.after_commit = False
        self._units = 0
        self._depth = 0
        self._wrote = False

    @contextmanager
    def _dying(self) -> Iterator[None]:
        outermost, self._depth = self._depth == 0, self._depth + 1
        try:
            with super().atomic():
                yield
                if outermost and self._wrote:
                    self._units += 1
                    if self._units == self.dies_at and not self.after_commit:
                        raise Killed
        finally:
            self._depth -= 1
        if outermost and self._wrote:
            self._wrote = False
            if self._units == self.dies_at and self.after_commit:
                raise Killed

    def atomic(self) -> Any:
        return self._dying() if self.dies_at is not None else super().atomic()

    def record_steps(self, *args: Any, **kwargs: Any) -> bool:
        self._wrote = True
        return super().record_steps(*args, **kwargs)

    def record_run_end(self, *args: Any, **kwargs: Any) -> bool:
        self._wrote = True
        return super().record_run_end(*args, **kwargs)


@dataclass(frozen=True)
class End:
    """What is the same however the turn went."""

    status: str
    transcript: str
    steps: list[str]
    usage: list[str | None]
    calls: list[tuple[str, str]]
    holder: str | None
    title: str


@pytest.fixture
def shop(site: MakeSite) -> None:
    @tool
    def look(number: int) -> int:
        """Look a number up."""
        if number == 13:
            raise ValueError(number)
        return number

    agent(name="shop", prompt="p", tools=[look])(type("Shop", (), {}))


def play(site: MakeSite, dies_at: int | None, *, after_commit: bool = False) -> tuple[End, Site, str]:
    def script(request: Any) -> ScriptedReply:
        if request.messages[-1].tool_results:
            return ScriptedReply("One is here, the other is lost.")
        calls = [call("look", "a", number=1), call("look", "b", number=13)]
        return ScriptedReply("Looking.", reasoning="two of them", calls=calls)

    store = MortalStore()
    desk = site(script, STORE=store)
    run_id = desk.send("Where are 1 and 13?").run_id
    store.dies_at, store.after_commit = dies_at, after_commit
    if dies_at is not None:
        with pytest.raises(Killed):
            desk.drive(run_id)
        store.dies_at = None
        store.clock = lambda: timezone.now() + timedelta(seconds=61)  # the lease has lapsed
    run = desk.drive(run_id)
    return ending(desk, run.thread_id, run_id), desk, run_id


def ending(desk: Site, thread_id: str, run_id: str) -> End:
    run = desk.store.get_run(run_id)
    detail = desk.store.get_thread(thread_id)
    assert run is not None
    assert detail is not None
    ids: dict[str, str] = {}
    calls = []
    for message in detail.messages:
        for one in message.tool_calls or ():
            ids[one["id"]] = f"call {len(ids)}"
            row = desk.store.get_tool_call(one["id"])
            assert row is not None
            calls.append((row.tool_name, row.status))
    told = canonical_json([[m.role, m.content, m.reasoning, m.tool_calls, m.tool_results] for m in detail.messages])
    steps = [step.name for step in desk.steps(run_id)]
    for ours, name in ids.items():
        told = told.replace(ours, name)
        steps = [step.replace(ours, name) for step in steps]
    usage = [row.step_key for row in desk.store.usage_of_run(run_id) if "#" not in str(row.step_key)]
    return End(run.status, told, steps, usage, calls, detail.summary.active_run_id, detail.summary.title)


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("after_commit", [False, True])
@pytest.mark.parametrize("unit", range(1, UNITS + 1))
def test_a_turn_cut_at_a_commit_ends_as_if_undisturbed(site: MakeSite, unit: int, after_commit: bool) -> None:
    undisturbed, _, _ = play(site, None)
    cut, desk, run_id = play(site, unit, after_commit=after_commit)
    assert cut == undisturbed
    run = desk.store.get_run(run_id)
    assert run is not None
    never_begun, over = (unit, after_commit) == (1, False), (unit, after_commit) == (UNITS, True)
    assert run.attempt == (1 if never_begun or over else 2)
    told_again = [frame["step"] for frame in desk.frames(run_id) if frame.get("kind") == "step-restart"]
    begun = {(1, True): [0], (2, False): [0], (3, True): [1], (4, False): [1]}  # a model call whose answer is not kept
    assert told_again == begun.get((unit, after_commit), [])
    crashed = [row.step_key for row in desk.store.usage_of_run(run_id) if "#" in str(row.step_key)]
    assert crashed == [f"llm:{step}#1.1" for step in told_again]  # money may have been spent: one row, once
    assert run.retries == len(told_again) + 2 * ((unit, after_commit) in {(2, True), (3, False)})  # both reads again


@pytest.mark.usefixtures("shop")
def test_the_journal_of_a_turn_says_what_a_worker_recorded(site: MakeSite) -> None:
    end, _, _ = play(site, None)
    assert end.steps == [
        "persist:user",
        "patch:agent:selected-history",
        "load:thread",
        "run:prompt-stages",
        "persist:run:start",
        "llm:0",
        "persist:toolcall:call 0",
        "persist:toolcall:call 1",
        "tool:call 0",
        "tool:call 1",
        "persist:tool-outputs:0",
        "llm:1",
        "persist:title",
        "persist:run:end",
    ]
    assert end.usage == ["llm:0", "llm:1"]
