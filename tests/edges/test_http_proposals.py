"""Proposals over HTTP: the list, every answer of the table, and who may name which."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import Group
from django.test import Client, override_settings

from agent.flows import proposals
from agent.flows.admission import chat
from agent.flows.starts import Send
from agent.providers.scripted import ScriptedProvider, ScriptedReply, call
from agent.registry import agent, isolated_registry, tool
from agent.store import get_store
from agent.testing.turns import HeldRunner, drive_run, held_runner
from tests.edges.conftest import Person

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Proposed:
    thread_id: str
    id: str
    runner: HeldRunner

    @property
    def path(self) -> str:
        return f"/agent/threads/{self.thread_id}/action-proposals"

    def decide(self, person: Person, word: str = "approve", **body: object) -> tuple[int, dict[str, Any]]:
        answer = person.post(f"{self.path}/{self.id}/{word}", body)
        return answer.status_code, answer.json()


@pytest.fixture
def proposed(owner: Person) -> Iterator[Proposed]:
    Group.objects.create(name="lead")
    script = ScriptedProvider(lambda request: ScriptedReply(calls=[call("close", "c", account="a")]))
    settings = {"PROVIDERS": {"s": script}, "DEFAULT_AGENT": "desk"}
    with isolated_registry(), override_settings(AGENT=settings), held_runner() as runner:

        @tool(kind="action", approver="lead", approval_mode="independent")
        def close(account: str) -> str:
            """Close an account."""
            return account

        agent(name="desk", prompt="p", tools=[close])(type("Desk", (), {}))
        admitted = chat(owner.actor, Send(message="Close it."))
        assert drive_run(admitted.run_id).status == "completed"
        [found] = proposals.page(owner.actor, admitted.thread_id).items
        yield Proposed(admitted.thread_id, found.id, runner)


@pytest.fixture
def lead(proposed: Proposed, stranger: Person) -> Person:
    stranger.user.groups.add(Group.objects.get(name="lead"))
    return stranger


def test_the_list_shows_the_record_without_what_is_not_for_clients(proposed: Proposed, owner: Person) -> None:
    [shown] = owner.get(proposed.path).json()
    assert (shown["id"], shown["decision"], shown["input"]) == (proposed.id, "pending", {"account": "a"})
    assert len(shown["digest"]) == 64
    assert not {"preparationInput", "executionContext", "idempotencyKey"} & shown.keys()


def test_the_list_goes_on_after_its_cursor(proposed: Proposed, owner: Person) -> None:
    [shown] = owner.get(proposed.path).json()
    cursor = quote(json.dumps({"createdAt": shown["createdAt"], "id": shown["id"]}))
    assert owner.get(f"{proposed.path}?after={cursor}").json() == []
    assert owner.get(f"{proposed.path}?after={quote(cursor)}").json() == []  # as the header wrote it
    for wrong in ("7", "{}", '{"createdAt": true, "id": "x"}', '{"createdAt": 1, "id": "x", "y": 1}', "\ud800"):
        sent = quote(wrong, errors="surrogatepass")
        refused = owner.get(f"{proposed.path}?after={sent}")
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_body"), wrong


def test_a_full_page_names_the_next_one(proposed: Proposed, owner: Person) -> None:
    store = get_store()
    [first] = proposals.page(owner.actor, proposed.thread_id).items
    assert "X-Action-Proposals-Next" not in owner.get(proposed.path)
    with store.atomic():
        for number in range(1000):
            store.create_proposal(replace(first.asked, id=f"p{number:03}"))
    page = owner.get(proposed.path)
    assert page["Access-Control-Expose-Headers"] == "X-Action-Proposals-Next"
    rest = owner.get(f"{proposed.path}?after={page['X-Action-Proposals-Next']}")
    shown = [each["id"] for each in (*page.json(), *rest.json())]
    assert (len(page.json()), len(shown), len(set(shown))) == (1000, 1001, 1001)
    assert "X-Action-Proposals-Next" not in rest


def test_an_approver_decides_once_and_the_answer_says_how_it_stands(proposed: Proposed, lead: Person) -> None:
    [shown] = lead.get(proposed.path).json()
    status, body = proposed.decide(lead, digest=shown["digest"], remember=True)
    assert (status, body["status"], body["proposal"]["decision"]) == (200, "applied", "approved")
    assert body["proposal"]["audit"]["remember"] is True
    assert body["proposal"]["execution"] == {"status": "queued", "generation": 0}
    assert proposed.runner.executed == [proposed.id]
    assert proposed.decide(lead)[1]["status"] == "unchanged"
    assert proposed.decide(lead, "reject", reason="No.")[1]["status"] == "conflict"
    assert proposed.runner.executed == [proposed.id]


def test_a_rejection_is_told_in_the_conversation(proposed: Proposed, lead: Person, owner: Person) -> None:
    assert proposed.decide(lead, "reject", reason="Not this one.")[1]["status"] == "applied"
    last = owner.get(f"/agent/threads/{proposed.thread_id}").json()["messages"][-1]
    assert "Not this one." in last["content"]
    assert last["actionProposalOutcome"]["status"] == "rejected"


def test_who_may_not_decide_learns_nothing(proposed: Proposed, owner: Person, stranger: Person) -> None:
    for word in ("approve", "reject"):
        assert proposed.decide(owner, word)[0] == 403
        assert proposed.decide(stranger, word)[0] == 403
        unknown = owner.post(f"{proposed.path}/nobody/{word}", {})
        assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
        elsewhere = owner.post(f"/agent/threads/nowhere/action-proposals/{proposed.id}/{word}", {})
        assert elsewhere.status_code == 404
        assert Client().post(f"{proposed.path}/{proposed.id}/{word}").status_code == 401
    assert stranger.get(proposed.path).status_code == 403
    assert owner.get("/agent/threads/nowhere/action-proposals").status_code == 404


def test_another_card_or_another_field_decides_nothing(proposed: Proposed, lead: Person, owner: Person) -> None:
    status, body = proposed.decide(lead, digest="f" * 64)
    assert (status, body["code"]) == (409, "card_changed")
    for extra in ({"via": "app"}, {"reason": "x"}, {"decision": "approved"}):
        status, body = proposed.decide(lead, **extra)
        assert (status, body["code"]) == (400, "invalid_body")
    assert owner.get(proposed.path).json()[0]["decision"] == "pending"


def test_what_is_deleted_is_unknown(proposed: Proposed, lead: Person, owner: Person) -> None:
    owner.delete(f"/agent/threads/{proposed.thread_id}")
    assert proposed.decide(lead)[0] == 404
    assert owner.get(proposed.path).status_code == 404


def test_a_message_that_is_a_decision_decides_and_starts_nothing(proposed: Proposed, owner: Person) -> None:
    body = {"threadId": proposed.thread_id, "message": f"Yes #{proposed.id}"}
    refused = owner.post("/agent/chat", body)
    assert (refused.status_code, refused.json()["proposalDecision"]) == (200, {"status": "not_found"})
    owner.user.groups.add(Group.objects.get(name="lead"))
    answer = owner.post("/agent/chat", {**body, "message": "Yes."}, **{"Idempotency-Key": "k"})
    assert answer.status_code == 200
    told = {"status": "applied", "proposalId": proposed.id, "decision": "approved"}
    assert answer.json()["proposalDecision"] == told
    assert "approved" in answer.json()["text"]
    again = owner.post("/agent/chat", {**body, "message": "Yes."}, **{"Idempotency-Key": "k"})
    assert again.json() == answer.json()
