"""An agent asks another one: a run of its own, whose end is the answer; nobody is held while it works."""

from __future__ import annotations

from typing import Any

import pytest

from agent import signals
from agent.errors import ModelError, NotFound
from agent.flows import approvals
from agent.flows.cancel import cancel
from agent.flows.recovery import recover
from agent.flows.stream import attach
from agent.providers.scripted import ScriptedReply, call
from agent.signals import Event
from tests.flows.acting import kinds
from tests.flows.conftest import ALICE, Site
from tests.flows.delegating import ASK, START, MakeSite, child_of, made

LOOK = ScriptedReply("Looking.", calls=[call("look", "l", number=7)])
SHOWN = {"step-start", "tool-input-start", "tool-input-available", "tool-output", "step-finish"}
MOVE = ScriptedReply(calls=[call("move", "m", number=7)])


def test_the_answer_of_the_agent_that_was_asked_is_the_result_of_the_call(site: MakeSite) -> None:
    desk = made(site, {"desk": [ASK, "It is here."], "researcher": [LOOK, "Found it: here."]})
    parent = desk.turn("Where is 7?")
    child = child_of(parent)
    assert (parent.status, parent.lease_owner, child.status) == ("waiting", None, "queued")
    assert (child.trigger, child.parent_run_id, child.depth, child.agent_name) == (
        "delegate",
        parent.id,
        1,
        "researcher",
    )
    assert child.stream_run_id == parent.id
    assert child.input["task"] == "Where is 7?"
    assert desk.runner.started[-1] == child.id

    assert desk.drive(child.id).status == "completed"
    assert desk.runner.started[-1] == parent.id
    assert desk.drive(parent.id).status == "completed"

    question, asking, answer = desk.messages(parent.thread_id)
    assert (question.content, answer.content) == ("Where is 7?", "It is here.")
    (result,) = asking.tool_results or []
    assert (result["name"], result["output"]) == ("ask_researcher", {"text": "Found it: here."})
    row = desk.store.get_tool_call(result["id"])
    assert row is not None
    assert (row.status, row.tool_type, child.parent_call_id) == ("auto_executed", "read", row.id)
    assert [message.content for message in desk.messages(child.thread_id)] == [
        "Where is 7?",
        "Looking.",
        "Found it: here.",
    ]
    scope = desk.store.thread_scope(child.thread_id)
    assert scope is not None
    assert scope.transient
    assert [thread.id for thread in desk.store.list_threads(ALICE)] == [parent.thread_id]
    names = [step.name.partition(":")[0] for step in desk.steps(parent.id) if row.id in step.name]
    assert names == ["persist", "await", "tool"]


def test_its_frames_stand_in_the_stream_of_who_asked_under_the_call(site: MakeSite) -> None:
    desk = made(site, {"desk": [ASK, "It is here."], "researcher": [LOOK, "Found it."]})
    parent = desk.turn()
    child = child_of(parent)
    desk.drive(child.id)
    desk.drive(parent.id)
    told = desk.frames(parent.id)
    aside = [frame for frame in told if "parentId" in frame]
    assert {frame["parentId"] for frame in aside} == {child.parent_call_id}
    assert "".join(frame["text"] for frame in aside if frame["kind"] == "text") == "Looking.Found it."
    assert [frame["kind"] for frame in aside if frame["kind"] in SHOWN] == [
        "step-start", "tool-input-start", "tool-input-available", "tool-output", "step-finish", "step-start",
        "step-finish",
    ]  # fmt: skip
    own = [frame.get("kind", "end") for frame in told if "parentId" not in frame]
    own = [kind for kind in own if kind in {*SHOWN, "title", "end"}]
    assert own == [
        "step-start", "tool-input-start", "tool-input-available", "tool-output", "step-finish", "step-start",
        "step-finish", "title", "end",
    ]  # fmt: skip
    places = [at for at, frame in enumerate(told) if "parentId" in frame]
    assert places == list(range(places[0], places[-1] + 1))
    assert desk.frames(child.id) == []
    with pytest.raises(NotFound) as refused:
        attach(ALICE, child.id)
    assert refused.value.code == "stream_not_found"


def test_what_it_spends_is_its_own_and_the_same_persons(site: MakeSite) -> None:
    desk = made(site, {"desk": [ASK, "Yes."], "researcher": "Found it."})
    parent = desk.turn()
    child = child_of(parent)
    desk.drive(child.id)
    desk.drive(parent.id)
    rows = [row for run in (parent, child) for row in desk.store.usage_of_run(run.id)]
    told = [(row.agent_name, row.actor_ref, row.step_key) for row in rows]
    assert told == [("desk", "alice", "llm:0"), ("desk", "alice", "llm:1"), ("researcher", "alice", "llm:0")]


def test_a_child_that_is_over_before_its_parent_parks_is_not_waited_for(site: MakeSite) -> None:
    desk = made(site, {"desk": [ASK, "Yes."], "researcher": "Found it."})
    admitted = desk.send()
    # The worker dies between the commit that begins the child and the park.
    lapsed: list[str] = []

    def die(driver: Any) -> None:
        lapsed.append(driver.run_id)
        driver.hand_over()

    desk.drive(admitted.run_id, meanwhile=die)
    parent = desk.drive(admitted.run_id)
    child = child_of(parent)
    assert desk.drive(child.id).status == "completed"
    assert desk.drive(parent.id).status == "completed"
    assert lapsed == [parent.id]


@pytest.mark.parametrize("failure", [ModelError("No.", transient=False), ScriptedReply("")])
def test_a_child_that_fails_is_a_failed_call_and_the_parent_goes_on(site: MakeSite, failure: Any) -> None:
    desk = made(site, {"desk": [ASK, "I do not know."], "researcher": failure})
    parent = desk.turn()
    assert desk.drive(child_of(parent).id).status == "failed"
    assert desk.drive(parent.id).status == "completed"
    (result,) = desk.messages(parent.thread_id)[1].tool_results or []
    assert result["error"].startswith('The agent "researcher" could not answer.')
    assert kinds(desk, parent.id, "tool-output-error", "end") == ["tool-output-error", "end"]


def test_stopping_who_asked_stops_who_was_asked(site: MakeSite) -> None:
    desk = made(site, {"desk": ASK, "researcher": MOVE})
    parent = desk.turn()
    child = child_of(parent)
    assert desk.drive(child.id).status == "waiting"
    assert cancel(ALICE, parent.id)
    assert desk.runner.started[-1] == child.id
    assert desk.drive(child.id).status == "cancelled"
    (open_card,) = [row for row in map(desk.store.get_tool_call, _calls(desk, child.thread_id)) if row is not None]
    assert open_card.status == "failed"
    assert kinds(desk, parent.id)[-2:] == ["cancelled", "end"]
    assert recover(queued_for=0) == 0


def test_stopping_a_child_is_a_failed_call_of_its_parent(site: MakeSite) -> None:
    desk = made(site, {"desk": [ASK, "Then not."], "researcher": "Found it."})
    parent = desk.turn()
    assert cancel(ALICE, child_of(parent).id)
    assert desk.drive(parent.id).status == "completed"
    (result,) = desk.messages(parent.thread_id)[1].tool_results or []
    assert "was stopped" in result["error"]
    assert "cancelled" not in kinds(desk, parent.id)


def test_a_card_in_a_child_is_decided_there_and_shown_where_it_was_asked(site: MakeSite) -> None:
    desk = made(site, {"desk": [ASK, "Moved."], "researcher": [MOVE, "It is moved."]})
    parent = desk.turn()
    child = desk.drive(child_of(parent).id)
    assert (child.status, desk.store.get_run(parent.id).status) == ("waiting", "waiting")  # type: ignore[union-attr]
    (card,) = [frame for frame in desk.frames(parent.id) if frame.get("kind") == "approval-requested"]
    assert card["parentId"] == child.parent_call_id
    row = desk.store.get_tool_call(card["id"])
    assert row is not None
    assert (row.run_id, row.parent_call_id) == (child.id, child.parent_call_id)
    assert desk.store.run_for_tool_call(card["id"]) == child.id
    approvals.approve(ALICE, card["id"], digest=card["digest"])
    assert desk.runner.started[-1] == child.id
    assert desk.drive(child.id).status == "completed"
    assert desk.drive(parent.id).status == "completed"
    assert [frame["kind"] for frame in desk.frames(parent.id) if frame.get("id") == card["id"]][-2:] == [
        "approval-settled",
        "tool-output",
    ]


def test_a_detached_run_answers_later_in_the_conversation_that_asked(site: MakeSite) -> None:
    desk = made(site, {"desk": [START, "It is being looked up."], "researcher": "Found it."})
    parent = desk.turn()
    child = child_of(parent)
    assert parent.status == "completed"
    (result,) = desk.messages(parent.thread_id)[1].tool_results or []
    told = {"detached": True, "status": "started", "agent": "researcher", "runId": child.id}
    assert {name: result["output"][name] for name in told} == told
    assert (child.trigger, child.stream_run_id, child.depth) == ("detached", child.id, 1)

    holding = desk.send("And now?", thread_id=parent.thread_id)
    assert desk.drive(child.id).status == "completed"
    delivered = desk.messages(parent.thread_id)[-1]
    assert (delivered.content, delivered.agent_name, delivered.run_id) == ("Found it.", "researcher", child.id)
    assert [step.name for step in desk.steps(child.id)][-2:] == ["deliver:detached", "persist:run:end"]
    assert kinds(desk, child.id)[-1] == "end"
    assert desk.store.active_run_for_thread(parent.thread_id) == holding.run_id


def test_a_detached_run_outlives_who_asked_and_says_when_it_fails(site: MakeSite) -> None:
    desk = made(site, {"desk": START, "researcher": ModelError("No.", transient=False)}, MAX_STEPS=1)
    parent = desk.turn()
    assert desk.drive(child_of(parent).id).status == "failed"
    assert 'The agent "Researcher" could not finish' in desk.messages(parent.thread_id)[-1].content


def test_the_answer_to_a_conversation_that_is_gone_is_dropped(site: MakeSite) -> None:
    desk = made(site, {"desk": [START, "Soon."], "researcher": "Found it."})
    parent = desk.turn()
    desk.store.soft_delete_thread(parent.thread_id)
    child = desk.drive(child_of(parent).id)
    assert child.status == "completed"
    assert [step.payload for step in desk.steps(child.id) if step.name == "deliver:detached"] == [{"messageId": None}]


def test_an_agent_is_asked_once_in_a_chain(site: MakeSite) -> None:
    back = ScriptedReply(calls=[call("ask_desk", "back", task="You do it.")])
    desk = made(site, {"desk": [ASK, "So be it."], "researcher": [back, "I had to do it."]})
    parent = desk.turn()
    child = desk.drive(child_of(parent).id)
    assert child.status == "completed"
    (result,) = desk.messages(child.thread_id)[1].tool_results or []
    assert '"desk" is asked already' in result["error"]


def test_a_chain_has_a_depth(site: MakeSite) -> None:
    further = ScriptedReply(calls=[call("ask_clerk", "further", task="You do it.")])
    desk = made(site, {"desk": [ASK, "So."], "researcher": [further, "I did."]}, DELEGATION_MAX_DEPTH=1)
    child = desk.drive(child_of(desk.turn()).id)
    (result,) = desk.messages(child.thread_id)[1].tool_results or []
    assert "1 deep" in result["error"]


def test_only_agents_that_the_person_may_use_are_offered(site: MakeSite) -> None:
    desk = made(site, {"desk": "Hello."})
    desk.turn()
    offered = {spec.name for spec in desk.provider.requests[-1].tools}
    assert offered == {"ask_researcher", "start_researcher"}


def test_what_a_turn_has_reserved_does_not_stop_who_it_asks(site: MakeSite) -> None:
    reserved = {"day": {"tokens": 10**6, "reserve": 10**6 - 1}}
    desk = made(site, {"desk": [ASK, "Yes."], "researcher": [LOOK, "Found it."]}, QUOTA=reserved)
    child = desk.drive(child_of(desk.turn()).id)
    assert child.status == "completed", child.error_message
    assert "quota:check:1" in [step.name for step in desk.steps(child.id)]


def test_asking_is_told_as_an_event(site: MakeSite) -> None:
    heard: list[Event] = []

    def listen(sender: object, event: Event, **_: object) -> None:
        heard.append(event)

    signals.delegated.connect(listen)
    try:
        desk = made(site, {"desk": [START, "Soon."]})
        parent = desk.turn()
    finally:
        signals.delegated.disconnect(listen)
    (event,) = heard
    child = child_of(parent)
    assert event.payload["childRunId"] == child.id
    assert (event.payload["runId"], event.payload["agent"], event.payload["detached"]) == (
        parent.id,
        "researcher",
        True,
    )


def _calls(desk: Site, thread_id: str) -> list[str]:
    return [one["id"] for message in desk.messages(thread_id) for one in message.tool_calls or ()]
