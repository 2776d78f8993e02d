"""B158: every command ends, says what it did, refuses what is wrong, may be broken off and run twice at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command, get_commands
from django.db import connection

from agent.models import Message, Thread, UsageEntry
from governance.models import RepriceAudit, RollupDay
from governance.rollups import check
from tests.edges.server import database_url
from tests.edges.streams import eventually
from tests.governance import rows

ROOT = Path(__file__).resolve().parents[2]
OURS = sorted(name for name, app in get_commands().items() if app in {"agent", "governance"})
INBOX = "https://example.test/admin/governance/approvals/"

# What each needs to be run at all, and what each refuses.
LAWFUL: dict[str, list[str]] = {
    "agent_backfill_proposals": [],
    "agent_demo_data": ["--rows", "20", "--days", "3", "--force"],
    "agent_erase_actor": ["nobody", "--noinput"],
    "agent_purge": ["--threads-deleted-before", "2026-01-01"],
    "agent_recover": ["--grace", "0"],
    "agent_reprice": ["--reason", "a letter"],
    "agent_seed_prices": ["--model", "o3"],
    "agent_sweep_attachments": ["--older-than", "48h"],
    "agent_sweep_proposals": [],
    "governance_check_rollups": [],
    "governance_mail_approvals": [INBOX],
    "governance_rebuild_rollups": [],
}
WRONG: dict[str, list[list[str]]] = {
    "agent_backfill_proposals": [["--batch", "0"], ["--batch", "-1"], ["--batch", "many"]],
    "agent_demo_data": [["--rows", "0", "--force"], ["--until", "soon", "--force"], []],
    "agent_erase_actor": [[], ["", "--noinput"]],
    "agent_purge": [["--threads-deleted-before", "soon"], ["--threads-deleted-before", ""]],
    "agent_recover": [["--queued-for", "soon"], ["--queued-for", "-1"], ["--grace", "-1"], ["--grace", "nan"]],
    "agent_reprice": [
        [],
        ["--reason", " "],
        ["--reason", "x", "--from", "soon"],
        ["--reason", "x", "--include-estimated"],
    ],
    "agent_seed_prices": [["--model", ""]],
    "agent_sweep_attachments": [[], ["--older-than", "soon"], ["--older-than", "-1h"]],
    "agent_sweep_proposals": [["now"]],
    "governance_check_rollups": [["--from", "soon"], ["--from", "2026-02-01", "--to", "2026-01-01"]],
    "governance_mail_approvals": [[], ["/admin/"], ["javascript:alert(1)"]],
    "governance_rebuild_rollups": [
        ["--kind", "weather"],
        ["--from", "2026-02-30"],
        ["--from", "2026-02-01", "--to", "2026-01-01"],
    ],
}


def test_each_of_ours_is_tried() -> None:
    assert sorted(LAWFUL) == sorted(WRONG) == OURS


@pytest.mark.parametrize("name", OURS)
def test_help_says_what_it_does_and_ends(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        call_command(name, "--help")
    assert not ended.value.code
    assert f"{name} [-h]" in capsys.readouterr().out


@pytest.mark.django_db
@pytest.mark.parametrize("name", OURS)
def test_what_is_wrong_is_refused_and_changes_nothing(name: str) -> None:
    for arguments in [*WRONG[name], [*LAWFUL[name], "--no-such-option"]]:
        with pytest.raises(CommandError):
            call_command(name, *arguments, stdout=StringIO())


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", [name for name in OURS if name != "agent_demo_data"])
def test_without_a_row_it_ends_and_says_so_as_often_as_it_is_run(name: str, settings: Any) -> None:
    settings.AGENT = {"ATTACHMENTS": {"STORE": "agent.testing.InMemoryStagingStore"}}
    for _ in range(2):
        call_command(name, *LAWFUL[name], stdout=(text := StringIO()))
        assert text.getvalue()


@pytest.mark.django_db(transaction=True)
def test_invented_rows_are_written_once() -> None:
    call_command("agent_demo_data", *LAWFUL["agent_demo_data"], stdout=StringIO())
    before = UsageEntry.objects.count()
    with pytest.raises(CommandError, match="another --seed"):
        call_command("agent_demo_data", *LAWFUL["agent_demo_data"], stdout=StringIO())
    assert UsageEntry.objects.count() == before


# ---- broken off half-way, and twice at once --------------------------------------------------------------------------


@dataclass(frozen=True)
class Work:
    """Something long to do: the rows, how much of it is done, and how it looks when all of it is."""

    arguments: list[str]
    prepare: Callable[[], object]
    done: Callable[[], int]
    whole: int
    check: Callable[[], None]


def deleted_threads() -> None:
    long_ago = datetime(2025, 1, 1, tzinfo=UTC)
    threads = [rows.thread(long_ago, deleted_at=long_ago, last_seq=3) for _ in range(WHOLE)]
    for thread in threads:
        rows.entry(thread_id=thread.pk)
    Message.objects.bulk_create(
        Message(thread=thread, seq=seq, role="user", content="x", created_at=long_ago)
        for thread in threads
        for seq in (1, 2, 3)
    )


def gone_whole() -> None:
    assert not Thread.objects.exists()
    assert not Message.objects.exists()
    assert UsageEntry.objects.count() == WHOLE


WHOLE = 1500
UNPRICED = 8000
DAYS = 90


def unpriced_rows() -> None:
    rows.price("m")
    one = rows.entry(estimated_cost_nanos=None)
    names = [field.attname for field in UsageEntry._meta.concrete_fields if field.attname != "id"]
    values = {name: getattr(one, name) for name in names}
    UsageEntry.objects.bulk_create(UsageEntry(**values) for _ in range(UNPRICED - 1))


def all_priced() -> None:
    assert set(UsageEntry.objects.values_list("cost_nanos", flat=True)) == {120_000}
    audits = RepriceAudit.objects.all()
    assert sum(audit.rows_priced for audit in audits) == UNPRICED  # each row once, whoever did it
    assert sum(audit.nanos_after for audit in audits) == 120_000 * UNPRICED


def days_of_usage() -> None:
    for number in range(DAYS):
        for hour in range(4):
            rows.entry(rows.NOON - timedelta(days=number, hours=hour))


def rolled_up() -> None:
    assert not list(check())
    assert not RollupDay.objects.exclude(state="clean").exists()


LONG = {
    "agent_purge": Work(
        arguments=["--threads-deleted-before", "2026-01-01"],
        prepare=deleted_threads,
        done=lambda: WHOLE - Thread.objects.count(),
        whole=WHOLE,
        check=gone_whole,
    ),
    "agent_reprice": Work(
        arguments=["--reason", "a letter", "--by", "ana"],
        prepare=unpriced_rows,
        done=lambda: UsageEntry.objects.exclude(cost_nanos=None).count(),
        whole=UNPRICED,
        check=all_priced,
    ),
    "governance_rebuild_rollups": Work(
        arguments=["--kind", "usage", "--from", "2026-03-18", "--to", "2026-06-15"],
        prepare=days_of_usage,
        done=lambda: RollupDay.objects.count(),
        whole=DAYS,
        check=rolled_up,
    ),
}


def start(name: str, work: Work) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "DATABASE_URL": database_url(), "DJANGO_SETTINGS_MODULE": "tests.settings"}
    connection.close()
    return subprocess.Popen(
        [sys.executable, "manage.py", name, *work.arguments],
        cwd=ROOT,
        env={**environment, "PYTHONPATH": os.fspath(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", LONG)
def test_one_that_is_broken_off_is_finished_by_the_next(name: str) -> None:
    work = LONG[name]
    work.prepare()
    process = start(name, work)
    try:
        assert eventually(lambda: work.done() > 0, seconds=60)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) != 0
    finally:
        process.kill()
        process.communicate()
    assert 0 < work.done() < work.whole
    call_command(name, *work.arguments, stdout=StringIO())
    assert work.done() == work.whole
    work.check()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", LONG)
def test_two_at_once_do_it_once_between_them(name: str) -> None:
    work = LONG[name]
    work.prepare()
    both = [start(name, work) for _ in range(2)]
    told = [process.communicate(timeout=120)[0].decode() for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    assert work.done() == work.whole
    work.check()
