"""Whatever part of a thread a turn reads, it carries what it would carry of the whole, and shows it lawfully."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.domain.actor import Actor
from agent.domain.canonical import canonical_json
from agent.domain.commands import AppendMessage, RecordToolCall, SaveSummary
from agent.domain.history import HistoryPolicyContext, HistorySelection, estimate_message_tokens, fingerprint_of
from agent.domain.model_calls import ShownMessage
from agent.domain.snapshots import TurnMessage
from agent.domain.summaries import HistorySummary, leading_summary
from agent.domain.transcript import Manners, lawful, show
from agent.domain.windows import Window, window_history
from agent.flows import history
from agent.flows.history import messages_of
from agent.flows.pages import CHUNK, OF_A_TURN
from agent.testing import InMemoryStore

ANA = Actor("ana")
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
STATUSES = ["executed", "auto_executed", "rejected", "expired", "failed", "proposed", "running", "pending_approval"]


async def summarize(dropped: object, context: object, previous: str | None) -> HistorySummary | None:
    return HistorySummary(text="so far")


class WithoutTurnReader(InMemoryStore):
    capabilities = InMemoryStore.capabilities - {"turn_reader"}


@dataclass(frozen=True)
class ReadWhole:
    """The window's choice by a policy that promises nothing, so that the whole thread is read."""

    window: Window

    def select(self, messages: Sequence[TurnMessage], context: HistoryPolicyContext) -> HistorySelection:
        return self.window.select(messages, context)

    @property
    def summarize(self) -> object:
        return self.window.summarize

    @property
    def fingerprint(self) -> str:
        return self.window.fingerprint


@dataclass(frozen=True)
class Entry:
    role: str
    content: str
    calls: tuple[tuple[bool, str | None], ...]  # whether its result is on the message, and what its row says
    ghost: bool  # a result without a call
    removed: bool  # leaves a gap in the numbers


outcomes = st.tuples(st.booleans(), st.none() | st.sampled_from(STATUSES))
entries = st.builds(
    Entry,
    role=st.sampled_from(["user", "assistant", "assistant", "system"]),
    content=st.sampled_from(["", " ", "a", "text " * 9, "你好" * 5]),
    calls=st.lists(outcomes, max_size=3).map(tuple),
    ghost=st.booleans(),
    removed=st.sampled_from([False, False, False, True]),
)
threads = st.lists(entries, max_size=14)
bounds = st.none() | st.integers(1, 10)
budgets = st.none() | st.integers(1, 150)


def fill(store: InMemoryStore, thread: Sequence[Entry]) -> str:
    """A thread of these entries and a last question."""
    thread_id = store.create_thread(actor=ANA).id
    for number, entry in enumerate(thread):
        calls = entry.calls if entry.role == "assistant" else ()
        ids = [f"call-{number}-{place}" for place in range(len(calls))]
        told = [{"id": key, "providerCallId": "call_0", "name": "look", "input": {"n": number}} for key in ids]
        have = [key for key, (is_there, _) in zip(ids, calls, strict=True) if is_there]
        results = [{"id": key, "name": "look", "output": "x" * 20} for key in have]
        if entry.ghost and entry.role == "assistant":
            results.append({"id": "ghost", "name": "look", "output": "y" * 400})
        message = store.append_message(
            AppendMessage(
                thread_id=thread_id,
                role=entry.role,
                content=entry.content if entry.role == "assistant" else entry.content or "text",
                tool_calls=told or None,
                tool_results=results or None,
            )
        )
        for key, (_, status) in zip(ids, calls, strict=True):
            if status is not None:
                store.record_tool_call(call_row(key, message.id, thread_id, status))
        if entry.removed:
            store.truncate_from(thread_id, message.id)
    store.append_message(AppendMessage(thread_id=thread_id, role="user", content="now"))
    return thread_id


def call_row(call_id: str, message_id: str, thread_id: str, status: str) -> RecordToolCall:
    return RecordToolCall(
        id=call_id,
        provider_call_id=call_id,
        message_id=message_id,
        thread_id=thread_id,
        run_id=None,
        actor_ref=ANA.ref,
        tenant_ref=None,
        agent_name=None,
        tool_name="look",
        tool_type="read",
        input={},
        output={"long": "z" * 30},
        error="it broke" if status == "failed" else None,
        proposal_id="p1" if status == "proposed" else None,
        status=status,
    )


def context_of(thread_id: str) -> HistoryPolicyContext:
    return HistoryPolicyContext(thread_id=thread_id, actor=ANA, agent_name=None)


@given(threads, bounds, budgets, st.booleans(), st.none() | st.integers(0, 16), st.integers(1, 4))
@settings(max_examples=150, deadline=None)
def test_chunks_and_the_whole_give_the_same_bytes(
    thread: list[Entry], count: int | None, tokens: int | None, folds: bool, watermark: int | None, chunk: int
) -> None:
    window = window_history(count, tokens, summarize=summarize if folds else None)
    told: list[dict[str, Any]] = []
    for store in (InMemoryStore(), WithoutTurnReader()):
        store.new_id = iter(f"id-{number}" for number in range(999)).__next__
        store.clock = lambda: NOON
        thread_id = fill(store, thread)
        last = max((message.seq for message in store.in_seq(thread_id)[:-1]), default=0)
        if watermark is not None and last:
            made = SaveSummary(
                thread_id=thread_id,
                policy_fingerprint=fingerprint_of(window),
                up_to_seq=min(watermark, last),
                text="earlier",
                model_id="m",
            )
            store.save_thread_summary(made)
        policies = (window, ReadWhole(window))
        told += [history.load(store, policy, context_of(thread_id), chunk=chunk) for policy in policies]
    assert len({canonical_json(payload) for payload in told}) == 1


@given(threads, bounds, budgets, st.booleans(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_whatever_is_carried_a_strict_provider_is_shown_a_lawful_list(
    thread: list[Entry], count: int | None, tokens: int | None, alternating: bool, leading: bool
) -> None:
    store = InMemoryStore()
    payload = history.load(store, window_history(count, tokens, summarize=summarize), context_of(fill(store, thread)))
    shown = show(messages_of(payload["messages"]))
    if "dropped" in payload:
        shown.insert(0, leading_summary("so far"))
    system, sent = lawful("s", shown, Manners(alternating_roles=alternating, leading_system_only=leading))
    assert_lawful(sent)
    assert (leading and "dropped" in payload) == ("conversation_summary" in system)
    if leading:
        assert not [message for message in sent if message.role == "system"]
    if alternating:
        assert not [one for one, two in pairwise(sent) if one.role == two.role and not one.tool_calls]


class Halves:
    """An own policy: the first message, every third, and the last three."""

    def select(self, messages: Sequence[TurnMessage], context: object) -> HistorySelection:
        keep = [message for place, message in enumerate(messages) if place % 3 == 0 or place >= len(messages) - 3]
        return HistorySelection(keep=tuple(keep), drop=tuple(message for message in messages if message not in keep))


@given(threads)
@settings(max_examples=100, deadline=None)
def test_an_own_policy_is_held_to_the_same_rules(thread: list[Entry]) -> None:
    store = InMemoryStore()
    payload = history.load(store, Halves(), context_of(fill(store, thread)))
    assert_lawful(lawful("s", show(messages_of(payload["messages"])), Manners(alternating_roles=True))[1])


def assert_lawful(sent: Sequence[ShownMessage]) -> None:
    """Spec 03 §5, as far as it can be seen on the list alone."""
    seen: set[str] = set()
    for message in sent:
        calls = [call.id for call in message.tool_calls]
        assert calls == [result.id for result in message.tool_results]
        assert len({*calls}) == len(calls)
        assert not seen & {*calls}
        seen |= {*calls}
        assert message.role != "assistant" or message.content.strip() or message.tool_calls
    told = [message for message in sent if message.role != "system"]
    assert told[0].role == "user"
    assert sent[-1].role == "user"
    assert sent[-1].content.endswith("now")


class CountingStore(InMemoryStore):
    """Notes the pages that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: list[tuple[int | None, int]] = []

    def load_thread_for_turn(self, thread_id: str, **query: Any) -> Any:
        page = super().load_thread_for_turn(thread_id, **query)
        self.pages.append((query["message_limit"], len(page.messages) if page else 0))
        return page


def long_thread(store: InMemoryStore, count: int) -> str:
    thread_id = store.create_thread(actor=ANA).id
    with store.atomic():
        for number in range(count):
            role = "assistant" if number % 2 else "user"
            store.append_message(AppendMessage(thread_id=thread_id, role=role, content=f"message {number}"))
    return thread_id


@pytest.mark.parametrize(
    ("window", "summary", "pages"),
    [
        (window_history(4), None, [(4, 4)]),
        (window_history(4, summarize=summarize), None, [(None, 251)]),
        (window_history(4, summarize=summarize), 247, [(4 + OF_A_TURN, 4 + OF_A_TURN)]),
        (window_history(4, summarize=summarize), 245, [(4 + OF_A_TURN, 4 + OF_A_TURN)]),
        (window_history(4, summarize=summarize), 200, [(4 + OF_A_TURN, 20), (CHUNK, 100)]),
        (window_history(150, summarize=summarize), 101, [(CHUNK, 100), (CHUNK, 100)]),
        (window_history(None, 100, summarize=summarize), 240, [(CHUNK, 100)]),
        (window_history(None, 100), None, [(CHUNK, 100)]),
        (window_history(None, 1000), None, [(CHUNK, 100), (CHUNK, 100)]),
        (window_history(), None, [(None, 251)]),
        (window_history(summarize=summarize), 240, [(None, 251)]),
        (Halves(), None, [(None, 251)]),
    ],
)
def test_what_is_read(window: Any, summary: int | None, pages: list[tuple[int | None, int]]) -> None:
    store = CountingStore()
    thread_id = long_thread(store, 251)
    if summary is not None:
        made = SaveSummary(
            thread_id=thread_id, policy_fingerprint=fingerprint_of(window), up_to_seq=summary, text="t", model_id="m"
        )
        assert store.save_thread_summary(made)
    history.load(store, window, context_of(thread_id))
    assert store.pages == pages


def test_a_window_that_nothing_was_left_out_of_does_not_begin_with_a_summary() -> None:
    """A truncation may shorten a thread until all of it fits, above the end of its summary."""
    store = InMemoryStore()
    thread_id = long_thread(store, 4)
    window = window_history(None, 1000, summarize=summarize)
    made = SaveSummary(
        thread_id=thread_id, policy_fingerprint=fingerprint_of(window), up_to_seq=2, text="t", model_id="m"
    )
    store.save_thread_summary(made)
    payload = history.load(store, window, context_of(thread_id))
    assert not {"summary", "dropped"} & payload.keys()
    assert len(payload["messages"]) == 4


def twelve_messages(store: InMemoryStore) -> str:
    """Twelve messages, of which the sixth made two calls."""
    shapes = [
        Entry(role=("user", "assistant")[n % 2], content="text " * n, calls=(), ghost=False, removed=False)
        for n in range(11)
    ]
    shapes[5] = Entry(
        role="assistant", content="I look.", calls=((True, None), (True, None)), ghost=False, removed=False
    )
    return fill(store, shapes)


def test_no_limit_parts_a_call_from_its_result() -> None:
    store = InMemoryStore()
    thread_id = twelve_messages(store)
    whole = messages_of(history.load(store, window_history(), context_of(thread_id))["messages"])
    total = sum(map(estimate_message_tokens, whole))
    windows = [
        window_history(count, tokens) for count in (None, *range(1, 13)) for tokens in (None, *range(1, total, 7))
    ]
    kept = set()
    for window in windows:
        payload = history.load(store, window, context_of(thread_id))
        sent = lawful("s", show(messages_of(payload["messages"])), Manners(alternating_roles=True))[1]
        assert_lawful(sent)
        kept.add((len(payload["messages"]), any(message.tool_calls for message in sent)))
    assert {count for count, _ in kept} == set(range(1, 13))
    assert (6, False) in kept
    assert (8, True) in kept
