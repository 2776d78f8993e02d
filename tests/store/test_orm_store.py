"""What the ORM store has of its own: where it writes, how the process gets it, and its rare paths."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import IntegrityError, connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from agent.domain.actor import Actor
from agent.domain.commands import AppendMessage, NewRun, RunEnd
from agent.domain.runs import RunLease, Step
from agent.errors import Invalid, LeaseLost
from agent.models import Run
from agent.store import AgentStore, OrmStore, get_store
from agent.store.base import CAPABILITIES
from tests.store.turns import ANA, Turn

pytestmark = pytest.mark.django_db

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
keeps_the_promise: type[AgentStore] = OrmStore  # mypy reads it against every Protocol


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


class Elsewhere:
    """A router of a host that keeps the agent's tables on a database of their own."""

    def db_for_write(self, model: type[Any], **_hints: object) -> str | None:
        return "elsewhere" if model._meta.app_label == "agent" else None


class OwnStore(OrmStore):
    """A host's subclass."""


def run_of(store: OrmStore, lease_seconds: int = 60) -> RunLease:
    store.create_run(NewRun(id="r", thread_id="t", actor=ANA, input={}))
    lease = store.claim_run("r", "w", lease_seconds)
    assert lease is not None
    return lease


def test_every_declared_capability_is_there() -> None:
    for name in OrmStore.capabilities:
        members = [member for member in vars(CAPABILITIES[name]) if not member.startswith("_")]
        assert not [member for member in members if not callable(getattr(OrmStore, member, None))], name


def test_no_two_capabilities_name_a_method_alike() -> None:
    names = [name for part in OrmStore.__mro__ if part.__module__.startswith("agent.store.orm.") for name in vars(part)]
    own = [name for name in names if not name.startswith("__")]
    assert sorted(own) == sorted(set(own))


def test_the_process_has_one_store_until_the_settings_change() -> None:
    first = get_store()
    assert get_store() is first
    assert isinstance(first, OrmStore)
    with override_settings(AGENT={"STORE": f"{__name__}.OwnStore"}):
        assert isinstance(get_store(), OwnStore)
    assert type(get_store()) is OrmStore


def test_an_unknown_store_is_a_mistake_of_the_settings() -> None:
    with override_settings(AGENT={"STORE": "nowhere.Store"}), pytest.raises(ImproperlyConfigured):
        get_store()


def test_a_store_writes_where_the_host_routes_the_tables() -> None:
    with override_settings(DATABASE_ROUTERS=[f"{__name__}.Elsewhere"]):
        assert OrmStore().db == "elsewhere"
    assert OrmStore().db == "default"


def test_aliases_of_models_come_from_the_settings_at_each_use() -> None:
    store = OrmStore()
    assert store._alias_of("fast") is None
    with override_settings(AGENT={"MODEL_ALIASES": {"fast": "m"}}):
        assert store._alias_of("fast") == "m"


def test_a_refused_message_takes_no_number() -> None:
    store = OrmStore()
    thread_id = store.create_thread(actor=Actor("ana")).id
    with store.atomic():
        with pytest.raises(Invalid):
            store.append_message(AppendMessage(thread_id=thread_id, role="user", content="", run_id="x" * 65))
        assert store.append_message(AppendMessage(thread_id=thread_id, role="user", content="")).seq == 1


def test_a_payload_that_is_no_json_moves_nothing() -> None:
    store = OrmStore()
    lease = run_of(store)
    with store.atomic(), pytest.raises(Invalid):
        store.record_step(lease, Step(position=0, name="s", payload={1: "a"}))
    with store.atomic(), pytest.raises(Invalid):
        store.record_run_end(
            "r", RunEnd(status="completed"), lease=lease, steps=[Step(position=0, name="s", payload={1: "a"})]
        )
    assert (store.steps("r"), Run.objects.get().status) == ([], "running")


def test_a_lease_that_forgot_its_times_is_settled_with_those_of_the_row() -> None:
    store = OrmStore(clock=(clock := Clock()))
    lease = run_of(store)
    clock.now += timedelta(seconds=7)
    bare = RunLease(run_id="r", owner="w", attempt=lease.attempt, seconds=60)
    assert store.record_run_end("r", RunEnd(status="completed"), lease=bare)
    ended = Run.objects.get()
    assert (ended.duration_ms, ended.active_ms) == (7000, 7000)


def test_renewals_keep_the_time_that_a_killed_worker_had() -> None:
    store = OrmStore(clock=(clock := Clock()))
    lease = run_of(store)
    clock.now += timedelta(seconds=20)
    assert store.renew_run(lease)
    clock.now += timedelta(seconds=100)
    second = store.claim_run("r", "w2", 60)
    assert second is not None
    clock.now += timedelta(seconds=5)
    assert store.record_run_end("r", RunEnd(status="failed", error_code="run_failed"), lease=second)
    ended = Run.objects.get()
    assert (ended.active_ms, ended.duration_ms) == (25_000, 125_000)


def test_a_settlement_without_a_lease_knows_how_long_the_run_was() -> None:
    store = OrmStore(clock=(clock := Clock()))
    run_of(store)
    clock.now += timedelta(seconds=3)
    assert store.record_run_end("r", RunEnd(status="cancelled"))
    assert Run.objects.get().duration_ms == 3000


def test_frames_of_a_long_page_keep_their_numbers() -> None:
    store = OrmStore()
    assert store.append_frames("r", [f"{place}" for place in range(1, 951)]) == 950
    assert [frame.seq for frame in store.read_frames("r", 0, 1000)] == list(range(1, 951))
    assert store.read_frames("r", 948, 5)[0].frame == "949"


def test_a_frame_of_an_older_attempt_is_refused_also_within_a_unit() -> None:
    store = OrmStore()
    run_of(store)
    with store.atomic():
        with pytest.raises(LeaseLost):
            store.append_frames("r", ["{}"], attempt=0)
        assert store.append_frames("r", ["{}"], attempt=1) == 1


class Taken:
    """A database that answers the first inserts as if another writer had just taken the number."""

    def __init__(self, times: int) -> None:
        self.times, self.tried = times, 0

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self.tried += 1
        if self.tried <= self.times:
            raise IntegrityError("duplicate key")
        return execute(sql, params, many, context)


@pytest.mark.django_db(transaction=True)
def test_a_taken_number_is_tried_again_at_once_and_raised_after_eight_tries() -> None:
    store = OrmStore()
    with connection.execute_wrapper(Taken(7)):
        assert store.append_frames("r", ["{}"]) == 1
    with connection.execute_wrapper(taken := Taken(9)), pytest.raises(IntegrityError):
        store.append_frames("r", ["{}"])
    assert taken.tried == 8


@pytest.mark.only_on("postgresql")
@pytest.mark.django_db(transaction=True)
def test_only_frames_alone_do_not_wait_for_the_disk() -> None:
    store = OrmStore()
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = on")  # servers for tests have it off
    with CaptureQueriesContext(connection) as alone:
        store.append_frames("r", ["{}"])
    with CaptureQueriesContext(connection) as within, store.atomic():
        store.append_frames("r", ["{}"])
    assert "synchronous_commit" in alone.captured_queries[0]["sql"]
    assert not [query for query in within.captured_queries if "synchronous_commit" in query["sql"]]
    with connection.cursor() as cursor:
        cursor.execute("SHOW synchronous_commit")
        assert cursor.fetchone() == ("on",)


def test_ids_with_nul_or_surrogates_are_unknown() -> None:
    store = OrmStore()
    turn = Turn(store, "r")
    turn.admit()
    for odd in ("r\x00", "\ud800", ""):
        assert store.open_run(odd) is None
        assert store.run_scope(odd) is None
        assert store.claim_run(odd, "w", 60) is None
        assert store.load_thread_for_turn(odd) is None
        assert store.get_thread(odd) is None
        assert store.read_frames(odd, 0) == []
    with pytest.raises(Invalid):
        store.append_frames("r\x00", ["{}"])
