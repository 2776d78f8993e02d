"""A person's own agent speaks with one of ours: once for each message, in turn, and never as who decides."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import pytest
from django.db import connections

from agent.domain.actor import Actor
from agent.domain.personal import MESSAGE_RECEIVED, NewConversation
from agent.errors import (
    IdempotencyKeyReused,
    Invalid,
    NotFound,
)
from agent.flows import approvals, personal, proposals
from agent.flows.cancel import cancel
from agent.flows.recovery import recover
from agent.flows.threads import delete
from agent.providers.scripted import ScriptedReply
from agent.registry import agent
from agent.store.companions import personal_agent_store
from agent.testing.contracts.store import race
from tests.flows.acting import Acting, calls_of, cancel_call
from tests.flows.conftest import ALICE, Site
from tests.flows.speaking import ON, MakeSite, at_work, connected, delivered, desk_of, now, told

STORES = ("agent.store.OrmStore", "agent.testing.InMemoryStore")


@pytest.fixture
def desk(site: MakeSite) -> Callable[..., Site]:
    return partial(desk_of, site)


@pytest.mark.parametrize("store", STORES)
def test_a_message_is_answered_once_in_a_thread_of_its_person(desk: Callable[..., Site], store: str) -> None:
    here, assistant = desk(STORE=store), connected()
    conversation_id = delivered(assistant, context={"order": 7})
    run = here.drive(at_work(here, conversation_id).id)
    assert (run.status, run.trigger, run.actor) == ("completed", "send", Actor("alice", ("today",)))
    assert [message.content for message in here.messages(run.thread_id)] == ["Where is it?", "Here."]
    assert [row.actor_ref for row in here.store.usage_of_run(run.id)] == ["alice"]
    assert told(assistant, conversation_id) == [("message-received", "Where is it?"), ("message", "Here.")]
    seen = now(conversation_id)
    assert (seen.thread_id, seen.active_run_id, seen.status, seen.context) == (
        run.thread_id,
        None,
        "open",
        {"order": 7},
    )
    assert (seen.grant_info or {})["scopes"] == ["ask"]
    assert delivered(assistant, context={"order": 7}) == conversation_id  # again
    assert here.runner.started == [run.id]
    with pytest.raises(IdempotencyKeyReused):
        delivered(assistant, "Something else")


@pytest.mark.parametrize("store", STORES)
def test_a_further_message_waits_for_its_turn(desk: Callable[..., Site], store: str) -> None:
    here, assistant = desk("First.", "Second.", STORE=store), connected()
    conversation_id = delivered(assistant)
    first = at_work(here, conversation_id)
    delivered(assistant, "And that?", "m2", conversation_id=conversation_id, context={"more": True})
    assert here.runner.started == [first.id]
    here.drive(first.id)
    second = at_work(here, conversation_id)
    assert here.runner.started == [first.id, second.id]
    assert here.drive(second.id).thread_id == first.thread_id
    assert [kind for kind, _ in told(assistant, conversation_id)] == [*["message-received"] * 2, *["message"] * 2]
    assert told(assistant, conversation_id)[-1] == ("message", "Second.")
    assert now(conversation_id).context == {"more": True}


def test_eight_deliveries_of_one_message_are_one_turn(desk: Callable[..., Site]) -> None:
    here, assistant = desk(), connected()
    answers = race([partial(delivered, assistant)] * 8, connections.close_all)
    assert len(set(answers)) == 1
    assert len(here.runner.started) == 1
    assert told(assistant, answers[0]) == [("message-received", "Where is it?")]


def test_deliveries_and_the_ends_of_turns_do_not_get_in_each_others_way(site: MakeSite) -> None:
    """Twelve messages from four sides, while the turns before them end: each is answered once, in order."""
    agent(name="desk", prompt="p", tools=[])(type("Desk", (), {}))
    here, assistant = site(lambda _: "Here.", **ON), connected()
    conversation_id = delivered(assistant)
    until = time.monotonic() + 60

    def say(side: int) -> None:
        for number in range(3):
            delivered(assistant, f"{side}.{number}", f"m{side}.{number}", conversation_id=conversation_id)

    def answer_all() -> None:
        while len(told(assistant, conversation_id)) < 26:
            assert time.monotonic() < until, told(assistant, conversation_id)
            waiting = now(conversation_id).active_run_id
            if waiting is not None:
                assert here.drive(waiting).status == "completed"

    sides: list[Callable[[], object]] = [answer_all, *(partial(say, side) for side in range(2, 6))]
    race(sides, connections.close_all)
    events = told(assistant, conversation_id)
    assert [kind for kind, _ in events].count("message") == 13
    assert len(set(here.runner.started)) == len(here.runner.started) == 13
    (thread_id,) = {run.thread_id for run in map(here.store.get_run, here.runner.started) if run is not None}
    asked = [message.content for message in here.messages(thread_id) if message.role == "user"]
    assert asked == [text for kind, text in events if kind == "message-received"]


@pytest.mark.parametrize("store", STORES)
def test_what_cannot_be_taken_in_leaves_nothing(desk: Callable[..., Site], store: str) -> None:
    here, assistant = desk(STORE=store), connected()
    with pytest.raises(Invalid):
        delivered(assistant, agent=None)
    with pytest.raises(Invalid):
        delivered(assistant, " \u200b ")
    with pytest.raises(NotFound):
        delivered(assistant, conversation_id="nobody")
    delivered(assistant)  # the same id: it is new still
    assert len(here.runner.started) == 1


# ---- people decide ---------------------------------------------------------------------------------------------------


def test_a_person_is_asked_and_the_personal_agent_is_told(site: MakeSite) -> None:
    acting = Acting(site)
    acting.declare()
    here, assistant = acting.site(cancel_call(), **ON), connected()
    conversation_id = delivered(assistant, "Cancel it.")
    run = here.drive(at_work(here, conversation_id).id)
    assert (run.status, now(conversation_id).status, now(conversation_id).responder) == ("waiting", "waiting", "person")
    delivered(assistant, "yes", "m2", conversation_id=conversation_id)
    assert acting.done == []
    (call,) = calls_of(here, run.thread_id)
    assert (call.decision, here.runner.started) == (None, [run.id])
    approvals.approve(ALICE, call.id)
    assert here.drive(run.id).status == "completed"
    kinds = ["message-received", "approval-requested", "message-received", "approval-settled", "message"]
    assert [kind for kind, _ in told(assistant, conversation_id)] == kinds
    assert told(assistant, conversation_id)[3:] == [("approval-settled", "approved"), ("message", "Done.")]
    assert (now(conversation_id).status, now(conversation_id).responder) == ("open", "agent")


def test_a_word_of_the_personal_agent_decides_no_proposal(site: MakeSite) -> None:
    acting = Acting(site)
    acting.declare(approval_mode="independent")
    here, assistant = acting.site(cancel_call(), **ON), connected()
    conversation_id = delivered(assistant, "Cancel it.")
    run = here.drive(at_work(here, conversation_id).id)
    assert run.status == "completed"
    delivered(assistant, "yes", "m2", conversation_id=conversation_id)
    (call,) = calls_of(here, run.thread_id)
    assert call.proposal_id is not None
    held = here.store.find_proposal(call.proposal_id)
    assert held is not None
    assert (held.decision, here.runner.executed) == ("pending", [])
    here.drive(at_work(here, conversation_id).id)
    proposals.reject(ALICE, call.proposal_id)
    assert told(assistant, conversation_id)[-1] == ("approval-settled", "rejected")


# ---- bad days --------------------------------------------------------------------------------------------------------


def test_a_failed_and_a_stopped_run_are_told(desk: Callable[..., Site]) -> None:
    here, assistant = desk(ScriptedReply(""), "Never said."), connected()
    conversation_id = delivered(assistant)
    assert here.drive(at_work(here, conversation_id).id).status == "failed"
    delivered(assistant, "Again.", "m2", conversation_id=conversation_id)
    cancel(ALICE, at_work(here, conversation_id).id)
    assert told(assistant, conversation_id)[1::2] == [("failed", "model_no_output"), ("failed", "cancelled")]
    assert now(conversation_id).active_run_id is None


@pytest.mark.parametrize("who", ["gone", "unknown"])
def test_nobody_is_spoken_for_who_is_not_active_any_more(desk: Callable[..., Site], who: str) -> None:
    here, assistant = desk(), connected(who)
    conversation_id = delivered(assistant)
    assert told(assistant, conversation_id)[-1] == ("failed", "not_authenticated")
    assert (here.runner.started, now(conversation_id).active_run_id) == ([], None)


def test_a_thread_that_its_person_deleted_takes_no_message(desk: Callable[..., Site]) -> None:
    here, assistant = desk(), connected()
    conversation_id = delivered(assistant)
    run = here.drive(at_work(here, conversation_id).id)
    delete(ALICE, run.thread_id)
    delivered(assistant, "Still there?", "m2", conversation_id=conversation_id)
    assert told(assistant, conversation_id)[-1] == ("failed", "not_found")


@pytest.mark.parametrize("store", STORES)
def test_a_thread_that_its_person_uses_is_waited_for(desk: Callable[..., Site], store: str) -> None:
    here, assistant = desk("Here.", "To a person.", "To an agent.", STORE=store), connected()
    conversation_id = delivered(assistant)
    thread_id = here.drive(at_work(here, conversation_id).id).thread_id
    mine = here.send("My own question", thread_id=thread_id)
    delivered(assistant, "Mine?", "m2", conversation_id=conversation_id)
    assert now(conversation_id).active_run_id is None
    assert personal_agent_store(here.store).waiting_conversations() == [conversation_id]
    here.drive(mine.run_id)
    here.drive(at_work(here, conversation_id).id)
    assert told(assistant, conversation_id)[-1] == ("message", "To an agent.")


def test_a_lost_hand_over_is_found(desk: Callable[..., Site]) -> None:
    """What a process leaves that dies right after it took a message in."""
    here, assistant = desk(), connected()
    kept = personal_agent_store(here.store)
    made = kept.create_conversation(
        NewConversation(client_id="assistant", user_id="alice", agent_name="desk", grant_info={"scopes": []})
    )
    kept.append_event(made.id, MESSAGE_RECEIVED, {"text": "Where is it?"}, "m1")
    recover()
    run = at_work(here, made.id)
    assert here.runner.started == [run.id]
    here.drive(run.id)
    assert told(assistant, made.id)[-1] == ("message", "Here.")
    assert personal.go_on() == 0
