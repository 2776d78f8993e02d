"""THREAD_CONTRACT (spec 02 §5.2), all but the forks."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from agent.domain.actor import Actor, Owner
from agent.domain.commands import UNSET, AppendMessage, ThreadPatch
from agent.domain.snapshots import ThreadScope
from agent.errors import Conflict, Invalid, NotFound
from agent.store.base import AgentStore
from agent.testing.contracts.base import ContractMismatch, expect, same
from agent.testing.contracts.rows import ANA, BO, answer, new_call, new_run, new_thread, say, usage
from agent.testing.contracts.store import START, StoreCase, StoreSubject, case

THREAD_CONTRACT: list[StoreCase] = []


def listed(store: AgentStore, actor: Actor = ANA) -> list[str]:
    return [thread.id for thread in store.list_threads(actor)]


def contents(store: AgentStore, thread_id: str) -> list[str] | None:
    detail = store.get_thread(thread_id)
    return None if detail is None else [message.content for message in detail.messages]


@case(THREAD_CONTRACT, "03 promote is idempotent and lists the thread")
def _promote(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = store.create_thread(actor=ANA, transient=True).id
    same(listed(store), [], "before")
    for _ in range(2):
        store.promote_thread(thread_id)
        same(listed(store), [thread_id], "after")
        same(store.list_threads(ANA)[0].transient, False, "its flag")
    store.promote_thread("nobody")


@case(THREAD_CONTRACT, "04 an empty patch leaves the time of the last change alone", needs=("thread_patch",))
def _empty_patch(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    thread_id = new_thread(store)
    clock.advance(5)
    patched = store.update_thread(thread_id, ThreadPatch())
    expect(patched and patched.updated_at == START, "an empty patch")
    patched = store.update_thread(thread_id, ThreadPatch(title="x"))
    expect(patched and patched.updated_at == clock.now, "a patch")
    same(store.update_thread("nobody", ThreadPatch(title="x")), None, "an unknown thread")


@case(THREAD_CONTRACT, "05 None clears a pin, a left-out key keeps it", needs=("thread_patch",))
def _patch(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    store.update_thread(thread_id, ThreadPatch(default_agent="a", model="m", persona="p", title="t"))
    patched = store.update_thread(thread_id, ThreadPatch(default_agent=None, model=UNSET))
    seen = patched and (patched.default_agent, patched.model, patched.persona, patched.title)
    same(seen, (None, "m", "p", "t"), "pins and title")


@case(
    THREAD_CONTRACT,
    "06 a soft-deleted thread reads as unknown, and its rows can still be counted",
    needs=("runs", "thread_patch", "turn_reader"),
)
def _soft_delete(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store, held_by="run-1")
    call_id = new_call(store, answer(store, thread_id, run_id="run-1"))
    new_run(store, "run-1", thread_id=thread_id)
    store.record_usage(usage(run_id="run-1"))
    for _ in range(2):
        store.soft_delete_thread(thread_id)
        unknown = [
            store.get_thread(thread_id),
            store.owner_of_thread(thread_id),
            store.load_thread_for_turn(thread_id),
            store.active_run_for_thread(thread_id),
            store.owner_of_active_run("run-1"),
            store.messages_of_run(thread_id, "run-1"),
            store.truncate_after_last_user(thread_id),
            store.update_thread(thread_id, ThreadPatch(title="x")),
        ]
        same(unknown, [None] * len(unknown), "reads")
    expect(not store.claim_active_run(thread_id, "run-2"), "nobody claims it")
    for write in (partial(say, store, thread_id), partial(store.fork_thread, thread_id, "x")):
        try:
            write()
        except NotFound:
            continue
        raise ContractMismatch("a deleted thread was written to")
    scope = store.thread_scope(thread_id)
    expect(isinstance(scope, ThreadScope) and scope.deleted and scope.owner == Owner("ana", "acme"), "thread_scope")
    same(store.owner_of_tool_call(call_id), Owner("ana", "acme"), "its call")
    expect(store.run_scope("run-1") is not None and len(store.usage_of_run("run-1")) == 1, "its run and its ledger row")


@case(THREAD_CONTRACT, "07 an external id names one thread of an actor, and no thread of another")
def _external_id(subject: StoreSubject) -> None:
    store = subject.store
    first = store.create_thread(actor=ANA, external_id="x", title="one")
    same(store.create_thread(actor=ANA, external_id="x", title="two"), first, "again")
    other = store.create_thread(actor=BO, external_id="x")
    expect(other.id != first.id, "another actor's")
    same(store.thread_by_external_id("ana", "x"), first.id, "thread_by_external_id")
    same(store.thread_by_external_id("ana", "X"), None, "another case")
    store.soft_delete_thread(first.id)
    same(store.thread_by_external_id("ana", "x"), None, "deleted")
    try:
        store.create_thread(actor=ANA, external_id="x")
    except Conflict:
        return
    raise ContractMismatch("the external id of a deleted thread was given again")


@case(THREAD_CONTRACT, "07b racing creations with one external id make one thread", commits=True)
def _racing_external_id(subject: StoreSubject) -> None:
    store = subject.store
    made = subject.parallel([lambda: store.create_thread(actor=ANA, external_id="x").id] * 4)
    expect(len(set(made)) == 1, f"one thread, not {set(made)}")


@case(THREAD_CONTRACT, "08 owners differ by case and by a trailing space")
def _owner(subject: StoreSubject) -> None:
    store = subject.store
    owners = [Owner("ana", None), Owner("Ana", None), Owner("ana ", None), Owner("ana", ""), Owner("ana", "Acme ")]
    threads = [new_thread(store, Actor(owner.ref, (), owner.tenant_ref)) for owner in owners]
    same([store.owner_of_thread(thread_id) for thread_id in threads], owners, "owner_of_thread")
    lists = [listed(store, Actor(owner.ref, (), owner.tenant_ref)) for owner in owners]
    same(lists, [[thread_id] for thread_id in threads], "list_threads")
    same(store.owner_of_thread("nobody"), None, "an unknown thread")


@case(THREAD_CONTRACT, "09 racing appends get neighbouring numbers", commits=True)
def _racing_appends(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    seqs = subject.parallel([lambda: say(store, thread_id).seq] * 6)
    same(sorted(seqs), [1, 2, 3, 4, 5, 6], "seq")


@case(THREAD_CONTRACT, "10 a truncation removes a message and all later ones with their calls, not the ledger")
def _truncate(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    thread_id = new_thread(store)
    say(store, thread_id, "a")
    kept = new_call(store, answer(store, thread_id, "b", run_id="run-1"), "call-1")
    cut = say(store, thread_id, "c")
    lost = new_call(store, answer(store, thread_id, "d", run_id="run-1"), "call-2")
    store.record_usage(usage(run_id="run-1"))
    clock.advance(1)
    same(store.truncate_from(thread_id, cut.id), 2, "removed")
    same(contents(store, thread_id), ["a", "b"], "left")
    expect(store.get_tool_call(kept) is not None and store.get_tool_call(lost) is None, "calls")
    expect(len(store.usage_of_run("run-1")) == 1, "the ledger")
    same(store.list_threads(ANA)[0].updated_at, clock.now, "updated_at")


@case(THREAD_CONTRACT, "11 a truncation at an unknown message changes nothing")
def _truncate_unknown(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    thread_id, other = new_thread(store), new_thread(store)
    say(store, thread_id, "a")
    foreign = say(store, other, "b")
    clock.advance(1)
    same([store.truncate_from(thread_id, "nobody"), store.truncate_from(thread_id, foreign.id)], [0, 0], "removed")
    same([contents(store, thread_id), contents(store, other)], [["a"], ["b"]], "left")
    same({thread.updated_at for thread in store.list_threads(ANA)}, {START}, "updated_at")
    same(store.truncate_after_last_user("nobody"), None, "an unknown thread")


@case(THREAD_CONTRACT, "11b a regenerate keeps the last user message and removes what follows")
def _regenerate(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    same(store.truncate_after_last_user(thread_id), None, "no user message")
    for content in ("q1", "q2"):
        say(store, thread_id, content)
        answer(store, thread_id, f"{content}: a")
        answer(store, thread_id, f"{content}: b")
    same([store.truncate_after_last_user(thread_id) for _ in range(2)], [2, 0], "removed")
    same(contents(store, thread_id), ["q1", "q1: a", "q1: b", "q2"], "left")


@case(THREAD_CONTRACT, "12 a number freed by a truncation is not given again")
def _seq(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    say(store, thread_id)
    store.truncate_from(thread_id, say(store, thread_id).id)
    same(say(store, thread_id).seq, 3, "the next seq")


@case(THREAD_CONTRACT, "26 a thread may be made with its first message, which a known external id leaves out")
def _first_message(subject: StoreSubject) -> None:
    store = subject.store
    first = AppendMessage(thread_id="ignored", role="user", content="q1", run_id="run-1")
    made = [
        store.create_thread(actor=ANA, external_id="x", active_run_id="run-1", first_message=first) for _ in range(2)
    ]
    same(made[0], made[1], "the same external id again")
    same(made[0].last_message_preview, "q1", "the preview")
    answer(store, made[0].id, "a1")
    detail = store.get_thread(made[0].id)
    same([(m.seq, m.content) for m in (detail.messages if detail else ())], [(1, "q1"), (2, "a1")], "messages")


@case(
    THREAD_CONTRACT,
    "27 feedback is set and cleared on answers of live threads, and on nothing else",
    needs=("feedback",),
)
def _feedback(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    asked, given = say(store, thread_id, run_id="run-1"), answer(store, thread_id, run_id="run-1")
    vote = {"value": "up", "comment": "a\x00"}
    same([store.set_message_feedback(key, vote) for key in (given.id, asked.id, "nobody")], [True, False, False], "set")
    same([m.feedback for m in store.messages_of_run(thread_id, "run-1") or ()], [None, vote], "stored")
    same(store.set_message_feedback(given.id, None), True, "cleared")
    same([m.feedback for m in store.messages_of_run(thread_id, "run-1") or ()], [None, None], "after it")
    same([store.thread_of_message(key) for key in (given.id, "nobody")], [thread_id, None], "thread_of_message")
    store.soft_delete_thread(thread_id)
    same([store.set_message_feedback(given.id, vote), store.thread_of_message(given.id)], [False, None], "deleted")


@case(THREAD_CONTRACT, "28 components and follow-ups are replaced; nothing is stored as absent", needs=("message_ui",))
def _amended(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    message = answer(store, thread_id, run_id="run-1")
    for ui, follow_ups in (([{"id": "u1"}], ["a", "b"]), ([{"id": "u2"}], ["c"]), ([], [])):
        store.set_message_ui(message.id, ui)
        store.set_message_follow_ups(message.id, follow_ups)
        [stored] = store.messages_of_run(thread_id, "run-1") or [message]
        same((stored.ui, stored.follow_ups), (ui or None, follow_ups or None), "ui and follow-ups")
    store.set_message_ui("nobody", [])
    store.set_message_follow_ups("nobody", [])


@case(
    THREAD_CONTRACT,
    "24 a title is set, bounded and cleaned; a name that does not fit is refused",
    needs=("thread_patch",),
)
def _titles(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    same(store.list_threads(ANA)[0].title, "New chat", "the default")
    store.set_title(thread_id, "a\x00b")
    same(store.list_threads(ANA)[0].title, "a\ufffdb", "cleaned")
    store.set_title("nobody", "x")
    for refused in (ThreadPatch(title="x" * 256), ThreadPatch(model="m" * 129), ThreadPatch(persona="p\x00")):
        try:
            store.update_thread(thread_id, refused)
        except Invalid:
            continue
        raise ContractMismatch("a value that does not fit was stored")


@case(THREAD_CONTRACT, "24b threads deleted before a moment are found, longest deleted first, those of a run left out")
def _deleted(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    first, held, second, _alive = (new_thread(store) for _ in range(4))
    store.set_active_run(held, "run-1")
    for thread_id in (first, held, second):
        store.soft_delete_thread(thread_id)
        clock.advance(1)
    found = [store.deleted_threads(clock.now), store.deleted_threads(clock.now, 1)]
    same([*found, store.deleted_threads(clock.now - timedelta(seconds=3))], [[first, second], [first], []], "threads")


@case(
    THREAD_CONTRACT,
    "25 a hard delete removes the thread, its messages, calls, journals and frames, not runs or ledger",
    needs=("feedback", "frames", "journal", "runs"),
)
def _purge(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    call_id = new_call(store, answer(store, thread_id, run_id="run-1"))
    new_run(store, "run-1", thread_id=thread_id)
    store.append_frames("run-1", ["a", "b"])
    store.record_usage(usage(run_id="run-1"))
    store.soft_delete_thread(thread_id)
    same([store.purge_thread(thread_id), store.purge_thread(thread_id)], [True, False], "once")
    gone = [store.thread_scope(thread_id), store.get_tool_call(call_id), store.thread_of_message("m")]
    same(gone, [None, None, None], "gone")
    expect(not store.has_frames("run-1") and store.steps("run-1") == [], "frames and journal")
    expect(store.get_run("run-1") is not None and len(store.usage_of_run("run-1")) == 1, "run and ledger stay")
