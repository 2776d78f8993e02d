"""Decisions over HTTP: every answer of the table, and who may name which call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client, override_settings

from agent.domain.commands import RunEnd
from agent.flows.admission import chat
from agent.flows.starts import Send
from agent.providers.scripted import ScriptedProvider, ScriptedReply, call
from agent.registry import agent, isolated_registry, tool
from agent.store import get_store
from agent.testing.turns import HeldRunner, drive_run, held_runner
from tests.edges.conftest import Person

pytestmark = pytest.mark.django_db(transaction=True)

APPROVE, REJECT = "/agent/tool-call/approve", "/agent/tool-call/reject"


@dataclass
class Parked:
    """A run that waits for a decision about its one call."""

    run_id: str
    thread_id: str
    call_id: str
    runner: HeldRunner

    def body(self, **fields: object) -> dict[str, object]:
        return {"toolCallId": self.call_id, **fields}

    def card(self, person: Person) -> dict[str, Any]:
        (card,) = person.get(f"/agent/threads/{self.thread_id}").json()["messages"][1]["approvals"]
        return dict(card)


def script(request: Any) -> ScriptedReply:
    if request.messages[-1].tool_results:
        return ScriptedReply("Done.")
    return ScriptedReply(calls=[call("close", "c", account="a")])


@pytest.fixture
def parked(owner: Person) -> Iterator[Parked]:
    Group.objects.create(name="lead")
    with (
        isolated_registry(),
        override_settings(AGENT={"PROVIDERS": {"s": ScriptedProvider(script)}, "APPROVAL_TTL_SECONDS": 60}),
        held_runner() as runner,
    ):

        @tool(kind="action", approver="lead", four_eyes=True)
        def close(account: str) -> str:
            """Close an account."""
            return account

        agent(name="desk", prompt="p", tools=[close])(type("Desk", (), {}))
        admitted = chat(owner.actor, Send(message="Close it."))
        assert drive_run(admitted.run_id).status == "waiting"
        (pending,) = get_store().pending_approvals(2)
        yield Parked(admitted.run_id, admitted.thread_id, pending.tool_call.id, runner)


@pytest.fixture
def lead(parked: Parked, stranger: Person) -> Person:
    """Somebody else, with the role that is asked for."""
    stranger.user.groups.add(Group.objects.get(name="lead"))
    return stranger


def error(response: Any) -> tuple[int, str | None]:
    return response.status_code, response.json().get("code")


def test_an_approver_who_owns_nothing_decides_what_they_can_name(parked: Parked, lead: Person, owner: Person) -> None:
    digest = parked.card(owner)["digest"]
    answer = lead.post(APPROVE, parked.body(digest=digest, remember=True, via="app"))
    assert (answer.status_code, answer.json()) == (200, {"ok": True})
    assert parked.runner.started[-1] == parked.run_id
    assert lead.get(f"/agent/threads/{parked.thread_id}").status_code == 403  # deciding opens no conversation
    assert drive_run(parked.run_id).status == "completed"
    card = parked.card(owner)
    assert (card["status"], card["decidedBy"], card["decidedVia"]) == ("approved", lead.actor.ref, "app")
    assert card["fourEyes"] is True


def test_a_rejection_keeps_its_reason(parked: Parked, lead: Person, owner: Person) -> None:
    assert lead.post(REJECT, parked.body(reason="Not this one.")).json() == {"ok": True}
    assert drive_run(parked.run_id).status == "completed"
    card = parked.card(owner)
    assert (card["status"], card["reason"], card["decidedVia"]) == ("rejected", "Not this one.", "web")


def test_an_open_card_is_shown_as_it_was_asked(parked: Parked, owner: Person) -> None:
    card = parked.card(owner)
    digest, expires_at = card.pop("digest"), card.pop("expiresAt")
    assert card == {
        "id": parked.call_id,
        "status": "pending",
        "approver": "lead",
        "fourEyes": True,
        "confirmation": {"title": "Close", "verb": "Close"},
    }
    assert len(digest) == 64
    assert expires_at.endswith("Z")


def test_who_may_not_decide_learns_nothing(parked: Parked, owner: Person, stranger: Person) -> None:
    for path in (APPROVE, REJECT):
        assert error(stranger.post(path, parked.body())) == (403, "forbidden")
        assert error(owner.post(path, parked.body())) == (403, "forbidden")  # four eyes, and not the role
        assert error(stranger.post(path, {"toolCallId": "nobody"})) == (404, "not_found")
        assert Client().post(path, parked.body(), content_type="application/json").status_code == 401
    Group.objects.get(name="lead").user_set.add(owner.user)
    assert error(owner.post(APPROVE, parked.body())) == (403, "forbidden")  # four eyes alone
    assert parked.card(owner)["status"] == "pending"


def test_a_decision_that_came_second(parked: Parked, lead: Person) -> None:
    assert lead.post(APPROVE, parked.body()).status_code == 200
    assert lead.post(APPROVE, parked.body(via="again")).json() == {"ok": True}
    assert error(lead.post(REJECT, parked.body())) == (409, "already_decided")
    assert get_store().get_tool_call(parked.call_id).decided_via == "web"  # type: ignore[union-attr]


def test_another_card_than_the_one_that_was_shown(parked: Parked, lead: Person, owner: Person) -> None:
    assert error(lead.post(APPROVE, parked.body(digest="f" * 64))) == (409, "card_changed")
    assert error(lead.post(REJECT, parked.body(digest=""))) == (409, "card_changed")
    assert parked.card(owner)["status"] == "pending"


def test_a_decision_that_came_too_late(parked: Parked, lead: Person, owner: Person) -> None:
    store, clock = get_store(), get_store().clock
    store.clock = lambda: clock() + timedelta(seconds=61)
    assert error(lead.post(APPROVE, parked.body())) == (410, "approval_expired")
    assert error(lead.post(REJECT, parked.body())) == (410, "approval_expired")
    assert parked.card(owner)["status"] == "expired"
    assert parked.runner.started[-1] == parked.run_id


def test_a_run_that_is_over_asks_nobody_any_more(parked: Parked, lead: Person) -> None:
    assert get_store().record_run_end(parked.run_id, RunEnd(status="failed", error_code="run_failed"))
    assert error(lead.post(APPROVE, parked.body())) == (409, "run_not_active")


def test_a_conversation_that_is_deleted_takes_its_cards_along(parked: Parked, lead: Person, owner: Person) -> None:
    assert owner.delete(f"/agent/threads/{parked.thread_id}").status_code == 200
    assert lead.post(APPROVE, parked.body()).status_code == 404


@pytest.mark.parametrize(
    ("path", "fields", "named"),
    [
        (APPROVE, {"toolCallId": None}, "toolCallId"),
        (APPROVE, {"toolCallId": "a\x00"}, "toolCallId"),
        (APPROVE, {"remember": "yes"}, "remember"),
        (APPROVE, {"digest": 7}, "digest"),
        (APPROVE, {"via": ""}, "via"),
        (APPROVE, {"via": "x" * 65}, "via"),
        (APPROVE, {"via": "a\ud800"}, "via"),
        *((APPROVE, {"via": word}, "via") for word in ("text", "admin", "remembered", "expiry")),
        (REJECT, {"reason": "x" * 4097}, "reason"),
        (REJECT, {"reason": ["a"]}, "reason"),
    ],
)
def test_a_field_that_is_not_allowed_decides_nothing(
    parked: Parked, lead: Person, path: str, fields: dict[str, Any], named: str
) -> None:
    answer = lead.post(path, {**parked.body(), **fields})
    assert error(answer) == (400, "invalid_body")
    assert list(answer.json()["fields"]) == [named]
    assert get_store().get_tool_call(parked.call_id).decision is None  # type: ignore[union-attr]


def test_a_reason_with_what_no_database_holds_is_marked_and_kept(parked: Parked, lead: Person) -> None:
    assert lead.post(REJECT, parked.body(reason="a\x00b\ud800", unknown=1)).status_code == 200
    assert get_store().get_tool_call(parked.call_id).decision_reason == "a\ufffdb\ufffd"  # type: ignore[union-attr]


def test_a_decision_of_a_cookie_needs_its_token(parked: Parked, lead: Person) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(lead.user)
    assert client.post(APPROVE, parked.body(), content_type="application/json").status_code == 403
    assert get_store().get_tool_call(parked.call_id).decision is None  # type: ignore[union-attr]


# ---- questions -------------------------------------------------------------------------------------------------------

ANSWER, SKIP = "/agent/tool-call/answer", "/agent/tool-call/skip"
SIZE = {"id": "size", "prompt": "Which?", "defaults": ["s"], "input": {"type": "text", "max": 3}}


@pytest.fixture(params=["by the model", "first"])
def question(request: pytest.FixtureRequest, owner: Person) -> Iterator[Parked]:
    """A question of the model in its answer, and one that the agent puts before it."""
    intake = {"preamble": "One thing.", "questions": [SIZE]} if request.param == "first" else None

    def asking(request: Any) -> ScriptedReply:
        if request.messages[-1].tool_results:
            return ScriptedReply("Done.")
        return ScriptedReply(calls=[call("ask", "q", questions=[SIZE])])

    provider = ScriptedProvider(asking)
    with isolated_registry(), override_settings(AGENT={"PROVIDERS": {"s": provider}}), held_runner() as runner:
        agent(name="desk", prompt="p", tools=[], allow_ask=True, intake=intake)(type("Desk", (), {}))
        admitted = chat(owner.actor, Send(message="A lamp."))
        assert drive_run(admitted.run_id).status == "waiting"
        (pending,) = get_store().pending_approvals(2)
        yield Parked(admitted.run_id, admitted.thread_id, pending.tool_call.id, runner)


def test_the_user_answers_once(question: Parked, owner: Person, stranger: Person) -> None:
    assert owner.get("/agent/agents").json()[0]["allowAsk"] is True
    digest = question.card(owner)["digest"]
    assert error(owner.post(ANSWER, question.body(answers={}, digest="0" * 64))) == (409, "card_changed")
    assert error(stranger.post(ANSWER, question.body(answers={}))) == (403, "forbidden")
    wrong = owner.post(ANSWER, question.body(answers={"size": ["huge"], "other": []}))
    assert error(wrong) == (400, "invalid_body")
    assert set(wrong.json()["fields"]) == {"answers.size", "answers.other"}
    assert error(owner.post(ANSWER, question.body(answers=[]))) == (400, "invalid_body")
    assert error(owner.post(ANSWER, question.body())) == (400, "invalid_body")
    assert owner.post(ANSWER, question.body(answers={"size": ["l"]}, digest=digest)).json() == {"ok": True}
    assert error(owner.post(SKIP, question.body())) == (409, "already_decided")
    assert drive_run(question.run_id).status == "completed"


def test_the_user_skips(question: Parked, owner: Person) -> None:
    assert owner.post(SKIP, question.body()).json() == {"ok": True}
    assert error(owner.post(ANSWER, question.body(answers={}))) == (409, "already_decided")
    assert drive_run(question.run_id).status == "completed"


def test_an_action_is_not_answered(parked: Parked, lead: Person) -> None:
    assert error(lead.post(ANSWER, parked.body(answers={}))) == (409, "is_question")
    assert error(lead.post(SKIP, parked.body())) == (409, "is_question")
