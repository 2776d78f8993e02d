"""PERSONAL_AGENT_STORE_CONTRACT (spec 12 §6, experimental)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial

from agent.domain.clock import epoch_ms
from agent.domain.personal import MESSAGE_RECEIVED, Conversation, ConversationPatch, NewConversation
from agent.errors import AgentError, CursorExpired, Invalid, NotFound
from agent.store.personal import PersonalAgentStore
from agent.testing.contracts.base import ContractMismatch, expect, same
from agent.testing.contracts.personal_subject import Personal, PersonalAgentCase
from agent.testing.contracts.store import START

PERSONAL_AGENT_STORE_CONTRACT: list[PersonalAgentCase] = []

BARE = NewConversation(client_id="assistant", user_id="ana", agent_name="desk")
FULL = NewConversation(
    client_id="assistant",
    user_id="ana",
    agent_name="desk",
    account_ref="account 7",
    thread_id="t",
    parent_id="c1",
    open_direct_id="c2",
    status="waiting",
    responder="person",
    context={"z": 1, "a": ["x", {"said": "\x00 \ud800 😀"}]},
    grant_info={"actor": {"ref": "ana"}, "scopes": ["ask"], "signedIn": True},
)
FINGERPRINT = "f" * 64

Proof = Callable[[Personal], None]


def case(name: str, *, commits: bool = False) -> Callable[[Proof], Proof]:
    def add(proof: Proof) -> Proof:
        PERSONAL_AGENT_STORE_CONTRACT.append(PersonalAgentCase(name, proof, commits))
        return proof

    return add


def now(store: PersonalAgentStore, conversation_id: str) -> Conversation:
    found = store.get_conversation(conversation_id)
    if found is None:
        raise ContractMismatch("the conversation is gone")
    return found


def refused(error: type[AgentError], call: Callable[[], object], what: str) -> None:
    try:
        call()
    except error:
        return
    raise ContractMismatch(f"{what} was taken")


def begun(store: PersonalAgentStore, *types: str) -> tuple[str, list[str]]:
    """A conversation with an event of each of these types: its id, and theirs."""
    made = store.create_conversation(BARE)
    return made.id, [store.append_event(made.id, one, {"n": n}).id for n, one in enumerate(types, 1)]


@case("01 a conversation with every field reads back equal; with none, absent")
def _round_trip(subject: Personal) -> None:
    store = subject.store
    for given in (FULL, BARE):
        made = store.create_conversation(given)
        untouched = {"active_run_id": None, "turn_seq": 0, "reader_holder": None, "reader_until_ms": None}
        wanted = {**asdict(given), **untouched, "pruned_seq": 0, "created_at": START, "updated_at": START}
        same(asdict(made), {"id": made.id, **wanted}, "what is answered")
        same(store.get_conversation(made.id), made, "get_conversation")
    same(store.get_conversation("nobody"), None, "unknown")


@case("02 context merges and keeps fields that are left out")
def _merged(subject: Personal) -> None:
    store = subject.store
    made = store.create_conversation(FULL)
    same(store.update_conversation(made.id, ConversationPatch()), made, "an empty patch")
    subject.clock.advance(1)
    patch = ConversationPatch(context={"z": None, "b": 2}, account_ref=None, status="closed")
    changed = replace(
        made,
        context={**FULL.context, "z": None, "b": 2},
        account_ref=None,
        status="closed",
        updated_at=subject.clock.now,
    )
    same(store.update_conversation(made.id, patch), changed, "what is answered")
    same(store.get_conversation(made.id), changed, "what is kept")
    same(store.update_conversation("nobody", patch), None, "unknown")


@case("02b merges at once lose nothing", commits=True)
def _merged_at_once(subject: Personal) -> None:
    store = subject.store
    made = store.create_conversation(BARE)
    patches = [ConversationPatch(context={f"k{n}": n}) for n in range(8)]
    subject.parallel([partial(store.update_conversation, made.id, patch) for patch in patches])
    same(now(store, made.id).context, {f"k{n}": n for n in range(8)}, "the context")


@case("02c lists hold one client's conversations for one person, changed last first")
def _listed(subject: Personal) -> None:
    store, made = subject.store, []
    for client, user in (("a", "ana"), ("a", "ana"), ("a", "bo"), ("b", "ana"), ("A", "ana")):
        made.append(store.create_conversation(replace(BARE, client_id=client, user_id=user)).id)
        subject.clock.advance(1)
    store.append_event(made[0], "message", {})
    same([one.id for one in store.list_conversations("a", "ana")], [made[0], made[1]], "the order")
    same([one.id for one in store.list_conversations("a", "ana", 1)], [made[0]], "the limit")
    same([store.list_conversations("a", "cy"), store.list_conversations("a", "ana", 0)], [[], []], "nothing")


@case("03 numbers of events are contiguous under eight racing appends", commits=True)
def _contiguous(subject: Personal) -> None:
    store = subject.store
    made, _ = begun(store)
    subject.parallel([partial(store.append_event, made, "message", {"n": n}) for n in range(8)])
    events = store.events_after(made, None)
    same([one.seq for one in events], list(range(1, 9)), "the numbers")
    same(len({one.id for one in events}), 8, "the ids")
    refused(NotFound, lambda: store.append_event("nobody", "message", {}), "an event of an unknown conversation")


@case("04 one event a key; the second append returns the first")
def _keyed(subject: Personal) -> None:
    store = subject.store
    made, _ = begun(store)
    first = store.append_event(made, "message", {"said": ["\x00"]}, "k")
    subject.clock.advance(1)
    same(store.append_event(made, "other", {}, "k"), first, "again")
    same(store.append_event(made, "message", {}, "K").seq, 2, "another key")
    same(store.append_event(begun(store)[0], "message", {}, "k").seq, 1, "another conversation")
    same(now(store, made).updated_at, subject.clock.now, "an event is a change")
    same([store.append_event(made, "message", {}).seq for _ in "ab"], [3, 4], "without a key each is new")


@case("04b of eight racing appends with one key one event is left", commits=True)
def _keyed_at_once(subject: Personal) -> None:
    store = subject.store
    made, _ = begun(store)
    ids = {one.id for one in subject.parallel([partial(store.append_event, made, "message", {}, "k")] * 8)}
    same([one.id for one in store.events_after(made, None)], sorted(ids), "the one event")


@case("05 reading after a cursor returns only later events, in order, up to the limit")
def _after(subject: Personal) -> None:
    store = subject.store
    made, ids = begun(store, *["message"] * 40)
    same([one.id for one in store.events_after(made, None)], ids, "from the first")
    same([one.id for one in store.events_after(made, ids[35], 3)], ids[36:39], "behind one")
    same(store.events_after(made, ids[-1]), [], "behind the last")
    same([store.events_after("nobody", None), store.events_after(made, None, 0)], [[], []], "nothing")
    _, others = begun(store, *["message"] * 3)
    for wrong in (others[1], "evt_1", "evt_1_", "evt_-1_a", "1", "", "evt_zz_0"):
        refused(Invalid, partial(store.events_after, made, wrong), f"the cursor {wrong!r}")


@case("06 a cursor at or below the pruned number is expired; only what turns have passed is pruned")
def _pruned(subject: Personal) -> None:
    store = subject.store
    made, ids = begun(store, MESSAGE_RECEIVED, "message", MESSAGE_RECEIVED, "message")
    same(store.prune_events(made, 4), 0, "before any turn")
    store.take_turn(made, "r1")
    store.finish_turn(made, "r1")
    store.take_turn(made, "r2")
    same([store.prune_events(made, 2), store.prune_events(made, 2), store.prune_events(made, 1)], [2, 0, 0], "two")
    same(now(store, made).pruned_seq, 2, "pruned_seq")
    for cursor in ids[:2]:
        refused(CursorExpired, partial(store.events_after, made, cursor), "an expired cursor")
    same([one.id for one in store.events_after(made, ids[2])], ids[3:], "behind one that is kept")
    same([one.id for one in store.events_after(made, None)], ids[2:], "from the first that is kept")
    same([store.prune_events(made, 99), store.prune_events("nobody", 9)], [1, 0], "up to the last turn")
    same(store.append_event(made, "message", {}).seq, 5, "the next number")


@case("06b a number is never given again, also where nothing is kept")
def _numbered(subject: Personal) -> None:
    store = subject.store
    made, _ = begun(store, MESSAGE_RECEIVED)
    store.take_turn(made, "r1")
    same((store.prune_events(made, 1), store.events_after(made, None)), (1, []), "nothing is kept")
    same(store.append_event(made, "message", {}).seq, 2, "the next number")


@case("07 of eight racing turns one gets the event; the next event waits until it is finished", commits=True)
def _turns(subject: Personal) -> None:
    store = subject.store
    made, ids = begun(store, "message", MESSAGE_RECEIVED, "message", MESSAGE_RECEIVED)
    taken = subject.parallel([partial(store.take_turn, made, f"r{n}") for n in range(8)])
    same([one.id for one in taken if one is not None], [ids[1]], "the one that got it")
    run_id = f"r{[one is not None for one in taken].index(True)}"
    seen = now(store, made)
    same((seen.active_run_id, seen.turn_seq), (run_id, 2), "the conversation")
    same(store.take_turn(made, "later"), None, "while it is at work")
    same(store.finish_turn(made, run_id), True, "its end")
    following = store.take_turn(made, "later")
    same(following and following.id, ids[3], "the next")
    store.finish_turn(made, "later")
    same([store.take_turn(made, "r"), store.take_turn("nobody", "r")], [None, None], "nothing asks")


@case("08 the end of a former run is none and changes nothing")
def _former(subject: Personal) -> None:
    store = subject.store
    made, _ = begun(store, MESSAGE_RECEIVED, MESSAGE_RECEIVED)
    for run_id in ("r1", "r2"):
        store.take_turn(made, run_id)
        before = now(store, made)
        same([store.finish_turn(made, former) for former in ("r0", run_id[:-1])], [False, False], "a former run")
        same(now(store, made), before, "the conversation")
        same([store.finish_turn(made, run_id), store.finish_turn(made, run_id)], [True, False], "its own, once")


@case("09 the right to write the reply excludes others until it lapses")
def _reader(subject: Personal) -> None:
    store = subject.store
    made, _ = begun(store)
    until = epoch_ms(subject.clock.advance(10))
    subject.clock.advance(-10)
    claims = [store.claim_reader(made, holder, until) for holder in ("a", "b", "a")]
    same(claims, [True, False, True], "while it holds")
    subject.clock.advance(10)
    same([store.claim_reader(made, holder, until + 5000) for holder in ("b", "a")], [True, False], "once it lapsed")
    same([store.release_reader(made, holder) for holder in ("a", "b", "b")], [False, True, False], "releases")
    same([store.claim_reader(made, "a", until), store.claim_reader("nobody", "a", until)], [True, False], "free again")


@case("10c a thread finds its conversations, and so does who looks for work")
def _found(subject: Personal) -> None:
    store = subject.store
    made = [store.create_conversation(replace(BARE, thread_id=one)).id for one in "tuT"]
    same([one.id for one in store.conversations_of_thread("t")], made[:1], "of a thread")
    same((store.conversations_of_thread("x"), store.waiting_conversations()), ([], []), "nothing")
    for each in (made[1], made[0]):
        store.append_event(each, MESSAGE_RECEIVED, {})
        subject.clock.advance(1)
    store.append_event(made[2], "message", {})
    same(store.waiting_conversations(), [made[1], made[0]], "changed first first")
    same((store.waiting_conversations(1), store.waiting_conversations(0)), ([made[1]], []), "the limit")
    store.take_turn(made[1], "r")
    same(store.waiting_conversations(), [made[0]], "while a run is at work")
    store.finish_turn(made[1], "r")
    same(store.waiting_conversations(), [made[0]], "once it is answered")
    store.update_conversation(made[0], ConversationPatch(status="closed"))
    same(store.waiting_conversations(), [], "once it is closed")


@case("11 a person's conversations go with their events and messages, and nobody else's")
def _erased(subject: Personal) -> None:
    store = subject.store
    mine, _ = begun(store, MESSAGE_RECEIVED)
    other = store.create_conversation(replace(BARE, user_id="bo")).id
    kept = store.append_event(other, "message", {})
    for conversation_id in (mine, other):
        store.claim_message("client", conversation_id, FINGERPRINT, conversation_id=conversation_id)
    same([store.erase_user("ana"), store.erase_user("ana")], [1, 0], "how many")
    same((store.get_conversation(mine), store.events_after(mine, None)), (None, []), "gone")
    same([store.events_after(other, None)[0].id, now(store, other).user_id], [kept.id, "bo"], "kept")
    states = [store.claim_message("client", one, FINGERPRINT).state for one in (mine, other)]
    same(states, ["new", "in_progress"], "messages")


@case("12 what no column can hold is refused and nothing is kept")
def _exact(subject: Personal) -> None:
    store = subject.store
    for wrong in (
        replace(BARE, client_id="c" * 256),
        replace(BARE, user_id="a\x00"),
        replace(BARE, responder="\ud800"),
    ):
        refused(Invalid, partial(store.create_conversation, wrong), "a reference")
    same(store.list_conversations("assistant", "ana"), [], "nothing is kept")
    made, _ = begun(store)
    refused(Invalid, lambda: store.append_event(made, "t" * 129, {}), "a type")
    refused(Invalid, lambda: store.append_event(made, "t", {}, "k" * 256), "a key")
    refused(Invalid, lambda: store.claim_message("o" * 256, "m", FINGERPRINT), "an owner")
    expect(store.events_after(made, None) == [], "no event is kept")
