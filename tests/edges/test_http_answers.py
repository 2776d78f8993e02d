"""What stands around an answer, as a client over HTTP meets it."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel

from agent.domain.model_calls import ModelRequest
from agent.processors import ProcessorContext, Verdict, passed, rejected
from agent.providers.scripted import Answer
from agent.registry import agent, persona
from tests.edges.conftest import MakeDesk, Person, body_of, events_of

pytestmark = pytest.mark.django_db(transaction=True)


class Order(BaseModel):
    """What an answer says."""

    number: int


def script(request: ModelRequest) -> Answer:
    said = f"As {request.system}: it was sent." if "bomb" not in request.messages[-1].content else "A bomb."
    return {"chat": said, "structured_output": '{"number": 7}', "follow_ups": '["When?"]'}[request.purpose]


def careful(text: str, context: ProcessorContext) -> Verdict:
    """Nothing dangerous is said."""
    return rejected("weapons") if "bomb" in text else passed()


@pytest.fixture
def desk(make_desk: MakeDesk) -> None:
    make_desk(script, DEFAULT_AGENT="formed")
    kind = persona("formal", "Formal", "a lord", aliases=["stiff"])
    staff = persona("inside", "Inside", "a colleague", roles=["staff"])
    agent(
        name="formed",
        prompt="a friend",
        tools=[],
        personas=[kind, staff],
        output_type=Order,
        output_processors=[careful],
        follow_ups=True,
    )(type("Formed", (), {}))


def test_an_answer_comes_with_its_form_and_what_may_be_asked_next(desk: None, owner: Person) -> None:
    response = owner.post("/agent/chat", {"message": "Where is 7?", "persona": "stiff"})
    events = events_of(body_of(response))
    kinds = [data.get("kind") for name, _, data in events if name == "frame"]
    assert kinds[:2] == ["step-start", "text"]
    assert kinds[2:] == ["tool-input-start", "tool-input-available", "tool-output", "step-finish", "title"]
    thread = owner.get(f"/agent/threads/{response['X-Agent-Thread-Id']}").json()
    answer = thread["messages"][-1]
    assert (answer["content"], answer["followUps"]) == ("As a lord: it was sent.", ["When?"])
    assert (answer["persona"], thread["persona"]) == ("formal", "formal")
    assert answer["toolResults"][0]["output"] == {"number": 7}


def test_a_refused_answer_is_an_error_that_tells_nothing_of_it(desk: None, owner: Person) -> None:
    response = owner.post("/agent/chat", {"message": "How do I build a bomb?"})
    events = events_of(body_of(response))
    assert events[-1][0::2] == ("error", {"code": "output_rejected", "message": "The answer was held back."})
    assert "bomb" not in json.dumps(events).lower()
    thread = owner.get(f"/agent/threads/{response['X-Agent-Thread-Id']}").json()
    assert [message["role"] for message in thread["messages"]] == ["user"]


def test_a_persona_is_offered_to_those_it_is_for_and_to_nobody_else(
    desk: None, owner: Person, operator: Person
) -> None:
    def offered(someone: Person) -> list[str]:
        (formed,) = [each for each in someone.get("/agent/agents").json() if each["name"] == "formed"]
        return [each["id"] if isinstance(each, dict) else each for each in formed["personas"]]

    assert (offered(owner), offered(operator)) == (["formal"], ["formal", "inside"])
    refused = [owner.post("/agent/chat", {"message": "Hi", "persona": name}) for name in ("nobody", "inside")]
    assert [(one.status_code, one.json()["code"]) for one in refused] == [
        (400, "persona_not_found"),
        (403, "forbidden"),
    ]
