"""BLANK_HISTORY_CONTRACT (the part about reading) and BOUNDED_READ_CONTRACT (spec 02 §5.9, §4.11)."""

from __future__ import annotations

from collections.abc import Callable

from agent.domain.commands import ThreadPatch
from agent.store.base import AgentStore
from agent.testing.contracts.base import expect, same
from agent.testing.contracts.rows import ANA, answer, claimed, new_call, new_run, new_thread, say
from agent.testing.contracts.store import StoreCase, StoreSubject, case
from agent.testing.contracts.thread_reads import page_of

BLANK_HISTORY_CONTRACT: list[StoreCase] = []
BOUNDED_READ_CONTRACT: list[StoreCase] = []


@case(
    BLANK_HISTORY_CONTRACT,
    "02 blank assistant messages are left out and count nowhere, those with calls stay",
    needs=("turn_reader",),
)
def _blank(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    say(store, thread_id, "q")
    answer(store, thread_id, " \n")
    answer(store, thread_id, "", ui=[{"id": "u"}])
    expect(not page_of(store, thread_id).has_assistant_message, "nothing was answered")
    answer(store, thread_id, "", tool_calls=[{"id": "c", "name": "find"}])
    answer(store, thread_id, "")
    say(store, thread_id, "")
    page = page_of(store, thread_id, 2)
    same([(message.role, message.seq) for message in page.messages], [("assistant", 4), ("user", 6)], "the newest two")
    same([message.seq for message in page_of(store, thread_id).messages], [1, 4, 6], "all")
    expect(page.has_more and not page_of(store, thread_id, 3).has_more, "older ones that count")
    expect(page.has_assistant_message, "a message with calls is an answer")
    detail = store.get_thread(thread_id)
    same(detail and len(detail.messages), 6, "the thread itself shows all")


@case(
    BLANK_HISTORY_CONTRACT,
    "02b a thread that begins with blanks has nothing more below its page",
    needs=("turn_reader",),
)
def _begins_blank(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    for content in ("", "", "q"):
        say(store, thread_id, content, role="user" if content else "assistant")
    page = page_of(store, thread_id, 1)
    same(([message.content for message in page.messages], page.has_more), (["q"], False), "the page")
    same(page_of(store, thread_id, 0, before=3).has_more, False, "an empty page")


@case(BOUNDED_READ_CONTRACT, "the reads of a turn take as many queries on a thread of 1,000 messages as on one of 10")
def _bounded(subject: StoreSubject) -> None:
    store = subject.store
    if subject.count_queries is None:
        return
    counts: list[dict[str, int]] = []
    for size in (10, 1000):
        thread_id, run_id = _pinned(store), f"run-{size}"
        _fill(subject, thread_id, size)
        new_run(store, run_id, thread_id=thread_id)
        reads = _reads(subject, thread_id, run_id, f"call-{thread_id}")
        counts.append({name: _counted(subject, read) for name, read in reads.items()})
    same(counts[1], counts[0], "queries on 1,000 messages and on 10")
    expect(all(0 < count <= 3 for count in counts[0].values()), f"a fixed small number: {counts[0]}")


def _pinned(store: AgentStore) -> str:
    thread = store.create_thread(actor=ANA, agent_name="support", persona="kind")
    store.update_thread(thread.id, ThreadPatch(model="fast"))
    return thread.id


def _fill(subject: StoreSubject, thread_id: str, size: int) -> None:
    with subject.store.atomic():
        for number in range(size - 1):
            say(subject.store, thread_id, "x" * 100, role=("user", "assistant")[number % 2])
        new_call(subject.store, answer(subject.store, thread_id), f"call-{thread_id}")


def _reads(subject: StoreSubject, thread_id: str, run_id: str, call_id: str) -> dict[str, Callable[[], object]]:
    store = subject.store
    return {
        "load_thread_for_turn": lambda: store.load_thread_for_turn(thread_id, message_limit=4),
        "load_thread_for_turn, older": lambda: store.load_thread_for_turn(thread_id, message_limit=4, before_seq=8),
        "load_thread_for_turn, none": lambda: store.load_thread_for_turn(thread_id, message_limit=0),
        "default_agent_for_thread": lambda: store.default_agent_for_thread(thread_id),
        "model_for_thread": lambda: store.model_for_thread(thread_id),
        "persona_for_thread": lambda: store.persona_for_thread(thread_id),
        "owner_of_thread": lambda: store.owner_of_thread(thread_id),
        "thread_scope": lambda: store.thread_scope(thread_id),
        "run_scope": lambda: store.run_scope(run_id),
        "owner_of_tool_call": lambda: store.owner_of_tool_call(call_id),
        "tool_call_approval": lambda: store.tool_call_approval(call_id),
        "claim_active_run": lambda: store.claim_active_run(thread_id, run_id) or None,
        "active_run_for_thread": lambda: store.active_run_for_thread(thread_id),
        "owner_of_active_run": lambda: store.owner_of_active_run(run_id),
        "release_active_run": lambda: store.release_active_run(thread_id, run_id),
        "claim_run, release_run": lambda: store.release_run(claimed(store, run_id)),
    }


def _counted(subject: StoreSubject, read: Callable[[], object]) -> int:
    if subject.count_queries is None:
        return 0
    with subject.count_queries() as count:
        expect(read() is not None, "an answer")
    return count()
