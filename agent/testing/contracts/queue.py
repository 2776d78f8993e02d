"""QUEUE_CONTRACT (spec 02 §5.6): messages that wait, in order, with everything their runs need."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Any

from agent.domain.clock import wire_time
from agent.domain.queue import NewQueuedMessage, QueuedMessage, QueuedPatch, QueuePause
from agent.errors import Conflict, Invalid, NotFound
from agent.store.base import AgentStore
from agent.store.queue import End
from agent.testing.contracts.base import ContractMismatch, expect, same
from agent.testing.contracts.rows import ANA, completed, new_run, new_thread, say
from agent.testing.contracts.store import START, StoreCase, StoreSubject, case

QUEUE_CONTRACT: list[StoreCase] = []
PAUSE = QueuePause(reason="run_failed", message="It broke.", at=wire_time(START))
FULL: dict[str, Any] = {
    "content": "And then?",
    "attachments": [{"mediaId": "m1", "url": "/m/1", "contentType": "image/png", "name": "a b.png"}],
    "agent_name": "support",
    "persona": "kind",
    "model": "fast",
    "page_context": {"z": 1, "a": "\x00"},
    "ui_capabilities": {"components": [{"name": "card", "version": "1"}]},
    "host_context": {"shop": 7},
    "interrupt": True,
}
ABSENT = ("attachments", "agent_name", "persona", "model", "page_context", "ui_capabilities", "host_context")


def wait(store: AgentStore, thread_id: str, message_id: str, at: End = "tail", **more: Any) -> QueuedMessage:  # noqa: ANN401 - fields of a message
    given = {"content": message_id, **more}
    return store.enqueue_message(NewQueuedMessage(id=message_id, thread_id=thread_id, actor=ANA, **given), at)


def order(store: AgentStore, thread_id: str) -> list[str]:
    return [message.id for message in store.list_queue(thread_id)]


def a_b_c(store: AgentStore) -> str:
    """A thread where three messages wait."""
    thread_id = new_thread(store)
    for message_id in "abc":
        wait(store, thread_id, message_id)
    return thread_id


@case(QUEUE_CONTRACT, "01 messages wait in order, one at the head before all")
def _order(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    for message_id, at in (("a", "tail"), ("b", "tail"), ("now", "head"), ("c", "tail")):
        wait(store, thread_id, message_id, "head" if at == "head" else "tail")
    same(order(store, thread_id), ["now", "a", "b", "c"], "the queue")
    same(order(store, new_thread(store)), [], "another thread's")


@case(QUEUE_CONTRACT, "02 every field survives; a plain message has none of them")
def _fields(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    message = wait(store, thread_id, "full", **FULL)
    given = {**FULL, "thread_id": thread_id, "actor": ANA, "created_at": START, "updated_at": START}
    same({name: getattr(message, name) for name in given}, given, "the answer")
    expect(list((message.page_context or {}).keys()) == ["z", "a"], "the order of keys")
    same([store.get_queued_message("full"), *store.list_queue(thread_id)], [message, message], "get and list")
    plain = wait(store, thread_id, "plain")
    same({name: getattr(plain, name) for name in ABSENT}, dict.fromkeys(ABSENT), "absent")
    same((plain.interrupt, store.get_queued_message("plain")), (False, plain), "a plain message")
    same(store.get_queued_message("nobody"), None, "an unknown id")
    same({field.name for field in fields(QueuedMessage)} - given.keys(), {"id", "position"}, "fields of the fixture")


@case(QUEUE_CONTRACT, "02b what does not fit is refused, and nothing waits")
def _refused(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    for more in ({"model": "m" * 129}, {"persona": "p\x00"}, {"page_context": {"n": float("nan")}}):
        try:
            wait(store, thread_id, "odd", **more)
        except Invalid:
            continue
        raise ContractMismatch(f"{more} was stored")
    try:
        wait(store, "nobody", "odd")
    except NotFound:
        pass
    else:
        raise ContractMismatch("a message waits for an unknown thread")
    same(order(store, thread_id), [], "the queue")
    same(wait(store, thread_id, "odd", content="a\x00b").content, "a\ufffdb", "text is cleaned")
    try:
        wait(store, thread_id, "odd")
    except Conflict:
        return
    raise ContractMismatch("two messages with one id")


@case(QUEUE_CONTRACT, "03 an edit of the text keeps attachments, None drops them")
def _edit(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    thread_id = new_thread(store)
    wait(store, thread_id, "a", **FULL)
    clock.advance(1)
    edited = store.update_queued_message("a", QueuedPatch(content="new"))
    wanted = ("new", FULL["attachments"], clock.now, START)
    same(edited and (edited.content, edited.attachments, edited.updated_at, edited.created_at), wanted, "a text edit")
    dropped = store.update_queued_message("a", QueuedPatch(attachments=None))
    same(dropped and (dropped.content, dropped.attachments), ("new", None), "dropped")
    same(store.list_queue(thread_id), [dropped], "stored")
    clock.advance(1)
    same(store.update_queued_message("a", QueuedPatch()), dropped, "an empty patch")
    same(store.update_queued_message("nobody", QueuedPatch(content="x")), None, "an unknown id")


@case(QUEUE_CONTRACT, "04 the interrupt flag is kept until it is cleared")
def _interrupt(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = a_b_c(store)
    flagged = store.update_queued_message("b", QueuedPatch(interrupt=True))
    same(flagged and (flagged.interrupt, flagged.content), (True, "b"), "answered")
    store.update_queued_message("b", QueuedPatch(content="later"))
    same([(one.interrupt, one.content) for one in store.list_queue(thread_id)][1], (True, "later"), "after an edit")
    cleared = store.update_queued_message("b", QueuedPatch(interrupt=False))
    same(cleared and cleared.interrupt, False, "cleared")


@case(QUEUE_CONTRACT, "05 moves are clamped, and a later message is at the tail")
def _move(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = a_b_c(store)
    for message_id, index, wanted in (("c", 0, "cab"), ("c", 99, "abc"), ("a", 1, "bac"), ("c", -3, "cba")):
        expect(store.move_queued_message(message_id, index), "it waits")
        same(order(store, thread_id), list(wanted), f"{message_id} to {index}")
    wait(store, thread_id, "d")
    wait(store, thread_id, "e", "head")
    same(order(store, thread_id), list("ecbad"), "later ones")
    same(store.move_queued_message("nobody", 0), False, "an unknown id")


@case(QUEUE_CONTRACT, "06 a message is removed once, and clearing answers how many waited")
def _remove(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = a_b_c(store)
    same([store.remove_queued_message(key) for key in ("b", "b", "nobody")], [True, False, False], "removed")
    same(order(store, thread_id), ["a", "c"], "the others")
    same([store.clear_queue(key) for key in (thread_id, thread_id, "nobody")], [2, 0, 0], "cleared")


@case(QUEUE_CONTRACT, "06b of racing removes one wins", commits=True)
def _racing_removes(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = a_b_c(store)
    won = subject.parallel([partial(store.remove_queued_message, "b")] * 6)
    same((sum(won), order(store, thread_id)), (1, ["a", "c"]), "winners")


@case(QUEUE_CONTRACT, "06c racing messages all wait, each in a place of its own", commits=True)
def _racing_messages(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    subject.parallel([partial(wait, store, thread_id, f"m{number}") for number in range(8)])
    positions = [message.position for message in store.list_queue(thread_id)]
    same(positions, list(range(8)), "positions")


@case(QUEUE_CONTRACT, "07 a pause is kept with its reason, message and time until it is lifted")
def _pause(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = a_b_c(store)
    same(store.queue_pause(thread_id), None, "at first")
    for pause in (PAUSE, QueuePause(reason="cancelled", at=wire_time(START)), None):
        store.set_queue_pause(thread_id, pause)
        same(store.queue_pause(thread_id), pause, "the pause")
    same(order(store, thread_id), list("abc"), "what waits")
    store.set_queue_pause("nobody", PAUSE)
    same(store.queue_pause("nobody"), None, "an unknown thread")


@case(QUEUE_CONTRACT, "08 a locked thread says who holds it and what holds its queue")
def _lock(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store, held_by="r1")
    store.set_queue_pause(thread_id, PAUSE)
    with store.atomic():
        same(
            store.lock_thread(thread_id),
            {"owner": {"ref": "ana", "tenant_ref": "acme"}, "run_id": "r1", "pause": PAUSE},
            "the thread",
        )
        same(store.lock_thread("nobody"), None, "an unknown thread")


@case(QUEUE_CONTRACT, "09 an idle thread is claimed in turn: not before messages that may start")
def _in_turn(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    same([store.claim_in_turn(thread_id, run) for run in ("r1", "r1", "r2")], [True, True, False], "an idle thread")
    store.release_active_run(thread_id, "r1")
    wait(store, thread_id, "a")
    expect(not store.claim_in_turn(thread_id, "r3"), "one that a message waits for")
    store.set_queue_pause(thread_id, PAUSE)
    expect(store.claim_in_turn(thread_id, "r3"), "one whose queue is paused")
    expect(not store.claim_in_turn("nobody", "r3"), "an unknown thread")


@case(QUEUE_CONTRACT, "10 a thread that messages wait for is not let go, else it is, with its title")
def _unless_waiting(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store, held_by="r1")
    wait(store, thread_id, "a")
    same([store.release_unless_waiting(key, "r1", title="Not yet") for key in (thread_id, "nobody")], [False] * 2, "no")
    store.remove_queued_message("a")
    expect(not store.release_unless_waiting(thread_id, "r2"), "not the holder")
    same(store.active_run_for_thread(thread_id), "r1", "the holder")
    expect(store.release_unless_waiting(thread_id, "r1", title="Order 1042"), "nobody waits")
    thread = store.list_threads(ANA)[0]
    same((thread.title, thread.active_run_id), ("Order 1042", None), "the thread")
    store.claim_active_run(thread_id, "r2")
    store.soft_delete_thread(thread_id)
    expect(store.release_unless_waiting(thread_id, "r2"), "of a deleted thread")


@case(QUEUE_CONTRACT, "11 a message and the end of a run do not miss each other", commits=True)
def _no_message_is_missed(subject: StoreSubject) -> None:
    """Whoever is second sees the first: the message waits for an idle thread never."""
    store = subject.store

    def send(thread_id: str) -> bool:
        with store.atomic():
            hold = store.lock_thread(thread_id)
            if hold is None or hold.run_id is None:
                return False
            wait(store, thread_id, f"of {thread_id}")
            return True

    def settle(thread_id: str) -> bool:
        with store.atomic():
            say(store, thread_id, "the answer", role="assistant")
            return store.release_unless_waiting(thread_id, "r1")

    for _ in range(20):
        thread_id = new_thread(store, held_by="r1")
        waits, released = subject.parallel([partial(send, thread_id), partial(settle, thread_id)])
        expect(waits is not released, f"waits: {waits}, released: {released}")


@case(
    QUEUE_CONTRACT, "12 idle queues are those that are not empty, not paused, and held by no open run", needs=("runs",)
)
def _idle(subject: StoreSubject) -> None:
    store = subject.store
    threads = {name: new_thread(store) for name in ("free", "held", "over", "lost", "paused", "deleted", "empty")}
    for name, thread_id in threads.items():
        if name != "empty":
            wait(store, thread_id, name)
        if name in {"held", "over"}:
            new_run(store, name, thread_id=thread_id)
        if name in {"held", "over", "lost"}:
            store.claim_active_run(thread_id, name)
    store.record_run_end("over", completed())
    store.set_queue_pause(threads["paused"], PAUSE)
    store.soft_delete_thread(threads["deleted"])
    ready = sorted([threads["free"], threads["over"], threads["lost"]])
    same([store.idle_queues(limit) for limit in (100, 1, 0)], [ready, ready[:1], []], "idle queues")


@case(QUEUE_CONTRACT, "13 a deleted thread has no queue, a fork none either, and a hard delete takes it along")
def _of_deleted(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = a_b_c(store)
    store.set_queue_pause(thread_id, PAUSE)
    fork = store.fork_thread(thread_id, "x")
    same((order(store, fork.id), store.queue_pause(fork.id)), ([], None), "the fork's")
    store.soft_delete_thread(thread_id)
    reads = [store.get_queued_message("a"), store.update_queued_message("a", QueuedPatch(content="x"))]
    same([*reads, store.queue_pause(thread_id), store.lock_thread(thread_id)], [None] * 4, "reads")
    same((order(store, thread_id), store.clear_queue(thread_id)), ([], 0), "the queue")
    same([store.remove_queued_message("a"), store.move_queued_message("a", 1)], [False, False], "writes")
    expect(store.purge_thread(thread_id), "a hard delete")


@case(QUEUE_CONTRACT, "14 what came out can be changed without changing what waits")
def _copies(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    context = {"n": [1]}
    message = wait(store, thread_id, "a", page_context=context)
    context["n"].append(2)
    (message.page_context or {})["n"].append(3)
    same(store.list_queue(thread_id)[0].page_context, {"n": [1]}, "page context")
