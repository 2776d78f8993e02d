"""Tell both stores the same and compare what they answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.db import transaction
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, MultipleResults, RuleBasedStateMachine, initialize, multiple, rule

from agent.domain.actor import Actor
from agent.domain.ledger import UsageEntry
from agent.domain.snapshots import Json
from agent.errors import AgentError, Signal
from agent.store.base import AgentStore
from agent.store.orm import OrmStore
from agent.testing import InMemoryStore
from agent.testing.contracts import SettableClock
from agent.testing.contracts.base import same

ACTORS = [Actor("ana", ("staff",), "acme"), Actor("ana"), Actor("Ana", (), ""), Actor("bo")]
actors = st.sampled_from(ACTORS)
refs = st.sampled_from(["ana", "Ana", "bo", "nobody"])
runs = st.sampled_from(["run-0", "run-1", "run-2", "run-3"])
CALLS = [f"call-{number}" for number in range(4)]
calls = st.sampled_from(CALLS)
texts = st.sampled_from(["", " \n", "hello", "a\x00b", "\ud800", "😀" * 130])
names = st.sampled_from([None, "support", "sales", "n" * 129, "n\x00"])
good_names = st.sampled_from([None, "support", "sales"])
json_values: st.SearchStrategy[Json] = st.sampled_from(
    [None, 0, "\x00\ud800", {"z": 1, "a": [True, None, 1.5]}, [], (1, 2), {1: 2}]
)
limits = st.sampled_from([-1, 0, 1, 2, 100])


class _Ids:
    """The same ids for both, whatever each of them took in vain."""

    def __init__(self) -> None:
        self.next = 0

    def __call__(self) -> str:
        self.next += 1
        return f"id-{self.next:06}"


class _Undone(Exception):
    """Takes a unit of work back."""


class Twins(RuleBasedStateMachine):
    """Every rule of the mixins speaks through `both`."""

    threads = Bundle("threads")
    messages = Bundle("messages")

    def __init__(self) -> None:
        super().__init__()
        self.clock = SettableClock()
        self.ids = (_Ids(), _Ids())
        aliases = {"alias": "model"}
        self.memory = InMemoryStore(clock=self.clock, new_id=self.ids[0], model_aliases=aliases)
        self.orm: AgentStore = OrmStore(clock=self.clock, new_id=self.ids[1], model_aliases=aliases)
        self.usage_ids: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self.seen_threads: list[str] = []
        self.differ = False
        self._all = transaction.atomic()
        self._all.__enter__()

    @initialize(target=threads)
    def two_threads(self) -> MultipleResults[str]:
        """Something to talk about from the first step on."""
        made = [self.both(lambda store: store.create_thread(actor=ACTORS[0])).id for _ in range(2)]
        self.seen_threads += made
        return multiple(*made)

    def both(self, told: Callable[[AgentStore], Any], *, undo: bool = False) -> Any:
        """One unit of work on each store; the answer is the same, or the error is."""
        expected, came = (self._answer(side, told, undo=undo) for side in (0, 1))
        start = max(ids.next for ids in self.ids)
        for ids in self.ids:
            ids.next = start
        note(f"  -> {expected!r}"[:300])
        self.differ = True
        same(came, expected, "the database answers otherwise than memory")
        self.differ = False
        return expected

    def _answer(self, side: int, told: Callable[[AgentStore], Any], *, undo: bool) -> Any:
        store, seen = (self.memory, self.orm)[side], dict(self.usage_ids[side])
        answer: Any = None
        try:
            with store.atomic():
                answer = self._plain(side, told(store))
                if undo:
                    raise _Undone
        except _Undone:
            self.usage_ids[side].clear()  # a number that was taken back may be given again
            self.usage_ids[side].update(seen)
        except (AgentError, Signal) as error:
            return {"raised": type(error).__name__}
        return answer

    def _plain(self, side: int, answer: Any) -> Any:
        """Ledger rows are numbered by their database: here by the order in which they were seen."""
        if isinstance(answer, UsageEntry):
            seen = self.usage_ids[side]
            return replace(answer, id=seen.setdefault(answer.id, len(seen)))
        if isinstance(answer, list):
            return [self._plain(side, item) for item in answer]
        return answer

    def usage_id(self, store: AgentStore, number: int) -> int:
        """The id that a store gave to a ledger row."""
        seen = self.usage_ids[0 if store is self.memory else 1]
        return next((key for key, value in seen.items() if value == number), 10**9)

    @rule(seconds=st.sampled_from([0.0005, 1, 30, 60, 3600]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def teardown(self) -> None:
        try:
            if not self.differ:
                self.compare_everything()
        finally:
            transaction.set_rollback(True)
            self._all.__exit__(None, None, None)

    def compare_everything(self) -> None:
        """The mixins add what they know."""
