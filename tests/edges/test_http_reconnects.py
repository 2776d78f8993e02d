"""B31: a browser that comes back by itself is told to stop: by the end of the stream, or by an answer that is none."""

from __future__ import annotations

from typing import Any

import pytest

from agent.errors import ModelError
from agent.providers.scripted import ScriptedReply
from agent.store import get_store
from tests.edges.conftest import MakeDesk, Person, body_of, events_of

pytestmark = pytest.mark.django_db(transaction=True)


def as_event_source(person: Person, run_id: str, last: int | None = None) -> Any:
    headers = {"Accept": "text/event-stream", "Cache-Control": "no-cache"}
    headers |= {} if last is None else {"Last-Event-ID": str(last)}
    return person.get(f"/agent/chat/{run_id}/stream", **headers)


def ended(make_desk: MakeDesk, owner: Person, reply: Any) -> tuple[str, list[tuple[str, int | None, Any]]]:
    """A run that is over, and what its stream said."""
    make_desk([reply], MODEL_RETRIES=0)
    response = owner.post("/agent/chat", {"message": "Hello"})
    return response["X-Agent-Run-Id"], events_of(body_of(response))


REPLIES = {
    "done": "Hello there.",
    "error": ScriptedReply("Hel", error=ModelError("no", transient=False)),
}


@pytest.mark.parametrize("end", REPLIES)
def test_whoever_comes_back_to_a_run_that_is_over_hears_its_end_from_every_place(
    make_desk: MakeDesk, owner: Person, end: str
) -> None:
    run_id, said = ended(make_desk, owner, REPLIES[end])
    assert said[-1][0] == end
    numbers = [number for _, number, _ in said if number]
    for last in (None, 0, *numbers, numbers[-1] + 5):
        answer = as_event_source(owner, run_id, last)
        assert answer.status_code == 200
        rest = events_of(body_of(answer))
        assert (rest[-1][0], rest[-1][2].get("code")) == (end, said[-1][2].get("code"))
        assert [number for _, number, _ in rest if number] == [one for one in numbers if one > (last or 0)]


def test_where_there_is_nothing_to_follow_the_answer_is_json_that_ends_the_coming_back(
    make_desk: MakeDesk, owner: Person, stranger: Person
) -> None:
    """An `EventSource` gives up for good on anything but a 200 that is an event stream."""
    run_id, said = ended(make_desk, owner, "Hello there.")
    answers = {"another's": as_event_source(stranger, run_id, 1), "never was": as_event_source(owner, "nowhere", 1)}
    get_store().remove_frames([run_id])
    answers["past its time"] = as_event_source(owner, run_id, len(said))
    get_store().soft_delete_thread(get_store().list_threads(owner.actor)[0].id)
    answers["deleted"] = as_event_source(owner, run_id)
    assert {who: answer.status_code for who, answer in answers.items()} == {
        "another's": 403,
        "never was": 404,
        "past its time": 404,
        "deleted": 404,
    }
    for answer in answers.values():
        assert answer["Content-Type"] == "application/json"
        assert set(answer.json()) == {"message", "code"}
        assert run_id not in answer.content.decode()
