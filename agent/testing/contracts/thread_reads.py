"""The cases of THREAD_CONTRACT about reading (spec 02 §5.2)."""

from __future__ import annotations

from agent.domain.actor import Actor
from agent.domain.snapshots import ThreadPage
from agent.store.base import AgentStore
from agent.testing.contracts.base import ContractMismatch, expect, same
from agent.testing.contracts.rows import ANA, BO, answer, new_thread, say
from agent.testing.contracts.store import StoreSubject, case
from agent.testing.contracts.threads import THREAD_CONTRACT, listed


def page_of(store: AgentStore, thread_id: str, limit: int | None = None, before: int | None = None) -> ThreadPage:
    page = store.load_thread_for_turn(thread_id, message_limit=limit, before_seq=before)
    if page is None:
        raise ContractMismatch("the thread is unknown to load_thread_for_turn")
    return page


@case(THREAD_CONTRACT, "01 lists leave out transient and deleted threads and order by last change")
def _list(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    first = new_thread(store)
    clock.advance(1)
    second, gone = new_thread(store), new_thread(store)
    store.create_thread(actor=ANA, transient=True)
    new_thread(store, BO)
    new_thread(store, Actor("ana", (), "other"))
    store.soft_delete_thread(gone)
    same(listed(store), [second, first], "by creation")
    clock.advance(1)
    say(store, first)
    same(listed(store), [first, second], "after a message")
    same([thread.id for thread in store.list_threads(ANA, limit=1)], [first], "limit 1")
    same(store.list_threads(ANA, limit=0), [], "limit 0")
    others = [new_thread(store, BO) for _ in range(4)]
    same(listed(store, BO)[:4], sorted(others), "of one instant, by id")


@case(THREAD_CONTRACT, "02 the preview is the first 120 characters of the last message")
def _preview(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    same(store.list_threads(ANA)[0].last_message_preview, "", "no message")
    say(store, thread_id, "first")
    say(store, thread_id, "😀" * 121)
    same(store.list_threads(ANA)[0].last_message_preview, "😀" * 120, "characters, not bytes")
    store.truncate_from(thread_id, say(store, thread_id, "gone").id)
    same(store.list_threads(ANA)[0].last_message_preview, "😀" * 120, "after a truncation")


@case(THREAD_CONTRACT, "15 a turn reads the newest messages, oldest first", needs=("turn_reader",))
def _page(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = store.create_thread(actor=ANA, title="t", agent_name="support").id
    for number in range(1, 4):
        say(store, thread_id, f"q{number}")
        answer(store, thread_id, f"a{number}")
    shown = {
        limit: [message.content for message in page_of(store, thread_id, limit).messages] for limit in (-1, 0, 3, 9)
    }
    every = ["q1", "a1", "q2", "a2", "q3", "a3"]
    same([shown[limit] for limit in (-1, 0, 3, 9)], [[], [], ["a2", "q3", "a3"], every], "by limit")
    same([page_of(store, thread_id, limit).has_more for limit in (0, 3, 6, None)], [True, True, False, False], "more")
    empty = page_of(store, thread_id, 0)
    same((empty.title, empty.default_agent, empty.has_assistant_message), ("t", "support", True), "flags at limit 0")
    earlier = page_of(store, thread_id, 2, before=4)
    same([message.content for message in earlier.messages], ["a1", "q2"], "below seq 4")
    same((earlier.has_more, page_of(store, thread_id, 9, before=2).has_more), (True, False), "more below")
    same(store.load_thread_for_turn("nobody"), None, "an unknown thread")


@case(THREAD_CONTRACT, "16 an answer outside the page still counts as an answer", needs=("turn_reader",))
def _answered(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    expect(not page_of(store, thread_id).has_assistant_message, "an empty thread")
    say(store, thread_id, "q1")
    expect(not page_of(store, thread_id).has_assistant_message, "a question")
    answer(store, thread_id)
    say(store, thread_id, "q2")
    expect(page_of(store, thread_id, 1).has_assistant_message, "the answer is above the page")


@case(THREAD_CONTRACT, "17 a transcript without stamps answers None, a stamped one without that run an empty list")
def _of_run(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    say(store, thread_id)
    same(store.messages_of_run(thread_id, "run-1"), None, "legacy")
    say(store, thread_id, run_id="run-2")
    say(store, thread_id, "mine", run_id="run-1")
    same(store.messages_of_run(thread_id, "run-3"), [], "another run")
    same([m.content for m in store.messages_of_run(thread_id, "run-1") or ()], ["mine"], "the run")
    same(store.messages_of_run("nobody", "run-1"), None, "an unknown thread")


@case(THREAD_CONTRACT, "23 listing 50 threads takes as many queries as listing one")
def _list_queries(subject: StoreSubject) -> None:
    store = subject.store
    counts = []
    for threads in (1, 49):
        for _ in range(threads):
            say(store, new_thread(store), "hello")
        if subject.count_queries is not None:
            with subject.count_queries() as count:
                same(len(store.list_threads(ANA)), {1: 1, 49: 50}[threads], "threads")
            counts.append(count())
    expect(len(set(counts)) <= 1 and all(count <= 2 for count in counts), f"queries: {counts}")
