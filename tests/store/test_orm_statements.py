"""Prepared statements and inserts: what they promise to the files of the store."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from agent.errors import Invalid
from agent.models import Message, RunStep, Thread
from agent.models.inserts import Insert
from agent.models.prepared import Select, Slot, Update

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)
THREADS = Insert(Thread)
TITLE = Update(lambda: Thread.objects.filter(pk=Slot("id")), {"title": Slot("title"), "updated_at": Slot("now")})
READ = Select(
    lambda: Thread.objects.filter(actor_ref=Slot("ref"), created_at__lte=Slot("now")).values_list(
        "id", "title", "transient", "created_at", "queue_pause"
    )
)


def thread(**values: object) -> dict[str, object]:
    return {"id": "t", "actor_ref": "ana", "created_at": NOW, "updated_at": NOW, **values}


def inserted(**values: object) -> dict[str, object]:
    return THREADS.one("default", THREADS.draft("default", thread(**values)))


def test_a_row_is_answered_as_a_later_read_gives_it() -> None:
    answered = inserted(title="a\x00b", queue_pause={"at": (1, 2)}, transient=True)
    assert answered == Thread.objects.values().get()
    assert answered["title"] == "a\ufffdb"
    assert answered["queue_pause"] == {"at": [1, 2]}


def test_a_read_gives_values_as_the_orm_does() -> None:
    inserted(queue_pause={"reason": "cancelled"})
    assert READ("default", ref="ana", now=NOW) == [["t", "New chat", False, NOW, {"reason": "cancelled"}]]


@pytest.mark.parametrize("ref", ["Ana", "ana ", "ana\x00", "\ud800", "x" * 1000])
def test_a_slot_matches_exactly_or_nothing(ref: str) -> None:
    inserted()
    assert READ("default", ref=ref, now=NOW) == []


def test_what_a_column_may_not_hold_is_refused_before_anything_is_sent() -> None:
    inserted()
    with CaptureQueriesContext(connection) as sent:
        with pytest.raises(Invalid):
            TITLE("default", id="t", title="x" * 256, now=NOW)
        with pytest.raises(Invalid):
            THREADS.draft("default", thread(actor_ref="a\x00"))
        with pytest.raises(Invalid):
            THREADS.draft("default", thread(queue_pause={"at": float("nan")}))
    assert len(sent) == 0


def test_a_draft_without_what_a_row_needs_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError):
        THREADS.draft("default", {"id": "t"})


def test_a_statement_is_compiled_once() -> None:
    built: list[int] = []

    def build() -> object:
        built.append(1)
        return Thread.objects.filter(pk=Slot("id")).values_list("id")

    select = Select(build)  # type: ignore[arg-type]
    assert [select("default", id=name) for name in "abc"] == [[], [], []]
    assert len(built) == 1


def test_an_update_answers_how_many_rows_it_matched() -> None:
    inserted()
    assert TITLE("default", id="t", title="New", now=NOW) == 1
    assert TITLE("default", id="t", title="New", now=NOW) == 1  # matched, although nothing changed
    assert TITLE("default", id="unknown", title="New", now=NOW) == 0


def test_a_taken_key_breaks_no_transaction() -> None:
    inserted()
    with transaction.atomic():
        assert THREADS.new("default", THREADS.draft("default", thread())) is None
        assert Thread.objects.count() == 1


def test_a_row_under_a_parent_needs_the_parent() -> None:
    messages = Insert(Message)
    draft = messages.draft(
        "default", {"id": "m", "thread_id": "t", "seq": 1, "role": "user", "content": "", "created_at": NOW}
    )
    assert messages.new("default", draft, under=(Thread, "t")) is None
    inserted()
    assert messages.new("default", draft, under=(Thread, "t\x00")) is None
    assert messages.new("default", draft, under=(Thread, "t")) is not None


def test_many_rows_go_in_parts_that_the_database_takes() -> None:
    drafts = [THREADS.draft("default", thread(id=f"t{place:03}")) for place in range(250)]
    with CaptureQueriesContext(connection) as sent:
        THREADS.many("default", drafts)
    assert Thread.objects.count() == 250
    assert 3 <= len(sent) <= 5


def test_a_serial_key_is_answered() -> None:
    steps = Insert(RunStep)
    values = {"run_id": "r", "position": 0, "name": "s", "payload": "null", "created_at": NOW}
    with connection.constraint_checks_disabled(), transaction.atomic():
        stored = steps.one("default", steps.draft("default", values))
        assert stored["id"] == RunStep.objects.get().pk
        transaction.set_rollback(True)
