"""Every query of the console over 30 and 365 days: server time, statements, memory; a roll-up, an export, a quota.

`.venv/bin/python -m bench.console [--rows N] [--store sqlite|postgres] [--repeat N] [--json FILE]`
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import UTC, timedelta
from typing import Any

from bench.databases import fresh_database
from bench.figures import Spread
from bench.machine import resident_bytes
from bench.report import Report, bench

GOALS_MS = {30: 100, 365: 300}
MB = 1_000_000
ACTOR_ROWS = 20_000


def run(report: Report, arguments: argparse.Namespace) -> None:
    with ExitStack() as stack:
        _, url = stack.enter_context(fresh_database(arguments.store))
        os.environ |= {"DATABASE_URL": url, "BENCH_CONSOLE": "1", "DJANGO_SETTINGS_MODULE": "bench.settings"}
        _measure(report, arguments)


def _measure(report: Report, arguments: argparse.Namespace) -> None:
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection
    from django.utils import timezone

    from governance.days import DayRange
    from governance.queries import Selection
    from governance.rollups import rebuild
    from governance.sample import Sample, make

    call_command("migrate", verbosity=0)
    now = timezone.now()
    seconds = _timed(lambda: make(Sample(rows=arguments.rows, seed=1, days=400, last=now.date(), until=now)))
    report.say(f"{arguments.rows} rows written in {seconds:.0f} s")
    seconds = _timed(lambda: sum(1 for _ in rebuild()))
    report.say(f"400 days of three kinds rolled up in {seconds:.0f} s")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    rows = []
    for days, goal in GOALS_MS.items():
        last = now.astimezone(UTC).date()
        asked = Selection.of(DayRange(first=last - timedelta(days=days - 1), last=last, zone=UTC))
        for name, query in _queries().items():
            spread, statements, grown = _one(query, asked, arguments.repeat)
            rows.append((name, days, spread.p50, spread.p95, statements, grown, "" if spread.p95 <= goal else "misses"))
            report.results[f"{name}.{days}"] = {"ms": spread.to_json(), "statements": statements, "mb": grown}
    report.table(["query", "days", "p50 ms", "p95 ms", "statements", "MB", "goal"], rows)
    _rest(report, arguments)


def _queries() -> Mapping[str, Callable[[Any], object]]:
    from governance import queries

    names = (
        *("spend_overview", "spend_summary", "spend_by_model", "spend_by_actor", "spend_by_thread", "usage_trend"),
        *("usage_page", "reliability", "run_metrics", "runs_page", "tool_stats", "tool_calls_page", "threads_page"),
        *("recent_runs", "recent_threads", "pending_approvals", "decisions_page"),
    )
    return {name: getattr(queries, name) for name in names}


def _one(query: Callable[[Any], object], asked: object, repeat: int) -> tuple[Spread, int, float]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as captured:
        query(asked)
    before = resident_bytes()
    spread = Spread.of(_timed(lambda: query(asked)) * 1000 for _ in range(repeat))
    return spread, len(captured), round((resident_bytes() - before) / MB, 1)


def _rest(report: Report, arguments: argparse.Namespace) -> None:
    """A whole export, and the quota of somebody who was busy today."""
    from django.test import override_settings
    from django.utils import timezone

    from agent.domain.actor import Actor
    from agent.models import UsageEntry
    from governance.days import DayRange
    from governance.export import lines
    from governance.queries import Selection, usage_page
    from governance.queries.paging import pages
    from governance.queries.values import UsageRow
    from governance.quota import LedgerQuota

    year = Selection.of(DayRange.of(timezone.now().date() - timedelta(days=364)))
    before = resident_bytes()
    written: list[int] = []
    seconds = _timed(
        lambda: written.append(sum(1 for _ in lines(UsageRow, pages(lambda ask: usage_page(year, {}, ask)))))
    )
    grown = (resident_bytes() - before) / MB
    report.say(f"CSV: {written[0]} lines in {seconds:.1f} s, memory up by {grown:.1f} MB")
    first = UsageEntry.objects.order_by("-created_at").first()
    assert first is not None
    busy = {"actor_ref": "busy", "created_at": timezone.now(), "run_id": None}
    values = {field.attname: getattr(first, field.attname) for field in UsageEntry._meta.concrete_fields} | busy
    del values["id"]
    UsageEntry.objects.bulk_create(UsageEntry(**values) for _ in range(ACTOR_ROWS))
    with override_settings(AGENT={"QUOTA": {"day": {"usd": 10**6}, "month": {"usd": 10**6}}}):
        quota = LedgerQuota()
        spread = Spread.of(_timed(lambda: quota.report(Actor("busy"))) * 1000 for _ in range(arguments.repeat))
    report.say(
        f"quota of a day and a month with {ACTOR_ROWS} rows today: p50 {spread.p50:.1f} ms, p95 {spread.p95:.1f} ms"
    )
    report.results |= {"csv": {"lines": written[0], "seconds": seconds, "mb": grown}, "quota": spread.to_json()}


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="postgres")
    parser.add_argument("--repeat", type=int, default=20)
    bench("console", parser, run)
