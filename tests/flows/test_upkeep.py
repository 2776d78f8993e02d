"""What a serving process does beside serving: recover runs, remove what is past its time, refuse a wrong start."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.test import override_settings
from django.utils import timezone

from agent.asgi import keep_up, with_agent
from agent.conf import setting_problems
from agent.flows import dispatch
from agent.flows.recovery import recover
from agent.flows.upkeep import purge
from agent.starting import refuse_unapplied_migrations, warn_of_clocks
from tests.flows.conftest import Site

MakeSite = Callable[..., Site]


def test_a_queued_run_that_nobody_took_is_handed_over_again(site: MakeSite) -> None:
    desk = site(["Hello."])
    run_id = desk.send().run_id
    assert recover() == 0  # it was handed over a moment ago
    assert recover(queued_for=0) == 1
    assert desk.runner.started == [run_id, run_id]
    assert desk.drive(run_id).status == "completed"
    assert recover(queued_for=0) == 0


def test_the_command_works_on_what_it_finds(site: MakeSite) -> None:
    desk = site(["Hello."])
    run_id = desk.send().run_id
    held = dispatch.use(None)
    out = io.StringIO()
    try:
        call_command("agent_recover", "--queued-for", "0", stdout=out)
    finally:
        dispatch.use(held)
    assert out.getvalue() == "1 run taken up.\n"
    run = desk.store.get_run(run_id)
    assert run is not None
    assert run.status == "completed"


def kept_up(until: Callable[[], bool] = lambda: True) -> None:
    """What a serving process does beside serving, until that is true."""
    stopped = threading.Event()
    thread = threading.Thread(target=keep_up, args=(stopped,))
    thread.start()
    pause = threading.Event()
    for _ in range(9000):
        if until() or not thread.is_alive():
            break
        pause.wait(0.01)
    stopped.set()
    thread.join(30)
    assert not thread.is_alive()


def test_a_serving_process_takes_every_queued_run_and_soon_what_others_release(site: MakeSite) -> None:
    desk = site(["Hello."] * 2)
    queued, released = desk.send().run_id, desk.send().run_id
    lease = desk.store.claim_run(released, "elsewhere:1:a", 60)
    assert lease is not None
    desk.runner.started.clear()

    def taken() -> bool:
        if desk.runner.started == [queued]:
            desk.store.release_run(lease)
        return released in desk.runner.started

    kept_up(taken)
    assert desk.runner.started == [queued, released]


def test_a_process_without_an_embedded_worker_looks_once(site: MakeSite) -> None:
    desk = site(["Hello."], EMBEDDED_WORKER=False)
    run_id = desk.send().run_id
    kept_up(lambda: False)  # it ends by itself
    assert desk.runner.started == [run_id, run_id]


def test_a_process_that_leaves_turns_to_workers_sends_only_what_was_lost(site: MakeSite) -> None:
    desk = site(["Hello."] * 2, RUNNER="celery")
    desk.send()
    lost = desk.send().run_id
    lease = desk.store.claim_run(lost, "w1", 60)
    assert lease is not None
    desk.store.release_run(lease)
    desk.runner.started.clear()
    kept_up(lambda: False)  # it ends by itself: beat does the rest
    assert desk.runner.started == [lost]


def test_streams_and_keys_go_when_their_time_is_over(site: MakeSite) -> None:
    desk = site(["Hello.", "Hello."])
    run = desk.turn(idempotency_key="k", fingerprint="f")
    assert (purge().streams, purge().keys) == (0, 0)
    desk.store.clock = lambda: timezone.now() + timedelta(hours=25)
    out = io.StringIO()
    call_command("agent_purge", stdout=out)
    assert out.getvalue() == "1 streams, 1 keys, 0 tokens and 0 journals removed.\n"
    assert not desk.store.has_frames(run.id)
    assert desk.messages(run.thread_id)[-1].content == "Hello."  # the thread is the record


def test_the_journal_of_a_run_goes_when_its_days_are_over_and_the_ledger_stays(site: MakeSite) -> None:
    desk = site(["Hello.", "Hello."], JOURNAL_DAYS=3)
    old, open_run = desk.turn(), desk.send().run_id
    desk.store.clock = lambda: timezone.now() + timedelta(days=3)
    assert purge().journals == 1
    assert (desk.steps(old.id), len(desk.steps(open_run))) == ([], 1)
    assert (desk.store.get_run(old.id), len(desk.store.usage_of_run(old.id))) == (old, 1)
    assert [message.content for message in desk.messages(old.thread_id)] == ["Hello", "Hello."]
    assert desk.drive(open_run).status == "completed"
    assert purge().journals == 0


def test_what_was_deleted_long_ago_goes_for_good_when_it_is_asked_for(site: MakeSite) -> None:
    desk = site(["Hello."])
    run, other = desk.turn(), desk.send()
    desk.store.soft_delete_thread(run.thread_id)
    desk.store.soft_delete_thread(other.thread_id)  # its run is not over
    out = io.StringIO()
    for day in (timezone.now() - timedelta(days=2), timezone.now() + timedelta(days=2)):
        call_command("agent_purge", "--threads-deleted-before", f"{day:%Y-%m-%d}", stdout=out)
    assert out.getvalue().splitlines()[1::2] == ["0 conversations removed.", "1 conversations removed."]
    assert desk.store.thread_scope(run.thread_id) is None
    assert desk.store.thread_scope(other.thread_id) is not None
    assert len(desk.store.usage_of_run(run.id)) == 1
    with pytest.raises(CommandError, match="no day"):
        call_command("agent_purge", "--threads-deleted-before", "soon")


def test_a_stream_without_a_ttl_is_kept(site: MakeSite) -> None:
    desk = site(["Hello."], SINK_OPTIONS={"ttl_seconds": 0})
    run = desk.turn()
    desk.store.clock = lambda: timezone.now() + timedelta(days=400)
    assert purge().streams == 0
    assert desk.store.has_frames(run.id)


@pytest.mark.django_db
def test_a_server_does_not_start_before_migrate() -> None:
    ((_, newest),) = MigrationLoader(connection).graph.leaf_nodes("agent")
    MigrationRecorder(connection).record_unapplied("agent", newest)
    with pytest.raises(ImproperlyConfigured, match=rf"agent\.E001.*agent\.{newest}"):
        refuse_unapplied_migrations()


@pytest.mark.only_on("postgresql", "mysql")
@pytest.mark.django_db(transaction=True)
def test_a_start_says_when_the_clocks_differ(caplog: pytest.LogCaptureFixture) -> None:
    ahead = warn_of_clocks()
    assert ahead is not None
    assert abs(ahead) < timedelta(seconds=15)
    assert not caplog.records
    warn_of_clocks(lambda: timezone.now() + timedelta(seconds=61))
    assert "differs from the database's by 0:01:0" in caplog.text


def test_a_server_does_not_start_with_wrong_settings() -> None:
    with override_settings(AGENT={"PERSONAL_AGENT": "sometimes"}):
        assert any("PERSONAL_AGENT" in problem for problem in setting_problems())
        with pytest.raises(ImproperlyConfigured, match=r"agent\.E010"):
            with_agent(lambda *_: None)  # type: ignore[arg-type]
