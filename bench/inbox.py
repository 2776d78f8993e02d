"""The inbox of the admin with thousands that wait: server time and statements of a page, through the admin's own view.

`.venv/bin/python -m bench.inbox [--waiting N] [--store sqlite|postgres] [--repeat N] [--json FILE]`
"""

from __future__ import annotations

import argparse
import os
import time
from contextlib import ExitStack
from typing import Any

from bench.databases import fresh_database
from bench.figures import Spread
from bench.report import Report, bench

GOAL_MS = 150
INBOX = "/admin/governance/approvals/"


def run(report: Report, arguments: argparse.Namespace) -> None:
    with ExitStack() as stack:
        _, url = stack.enter_context(fresh_database(arguments.store))
        os.environ |= {"DATABASE_URL": url, "DEBUG": "1", "DJANGO_SETTINGS_MODULE": "project.settings"}
        _measure(report, arguments)


def _measure(report: Report, arguments: argparse.Namespace) -> None:
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection

    call_command("migrate", verbosity=0)
    client = _lead()
    rows = []
    for waiting in (10, arguments.waiting):
        _ask(waiting)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
        for who in ("me", "all"):
            statements = _statements(client, who)
            spread = Spread.of(_timed(client, who) for _ in range(arguments.repeat))
            rows.append((waiting, who, spread.p50, spread.p95, statements, "" if spread.p95 <= GOAL_MS else "misses"))
            report.results[f"{who}.{waiting}"] = {"ms": spread.to_json(), "statements": statements}
    report.table(["waiting", "shown", "p50 ms", "p95 ms", "statements", "goal"], rows)


def _lead() -> Any:
    from django.contrib.auth.models import Group, Permission, User
    from django.test import Client

    user = User.objects.create_user("lead", is_staff=True)
    user.groups.add(Group.objects.create(name="lead"))
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_actionproposal", "decide_actionproposal"]))
    client = Client(SERVER_NAME="localhost")
    client.force_login(user)
    return client


def _ask(waiting: int) -> None:
    """So many that wait, half of them calls, half proposals; every tenth is the lead's to decide."""
    from django.db import transaction

    from agent.domain.actor import Actor
    from agent.domain.proposals import ProposalScope
    from agent.models import ActionProposal, ToolCall
    from agent.store import get_store
    from agent.testing.contracts import proposal_rows, rows

    store, there = get_store(), ToolCall.objects.count() + ActionProposal.objects.count()
    with transaction.atomic():
        for number in range(there, waiting):
            actor = Actor(f"person-{number}")
            approver = "role:lead" if number % 10 < 1 else "shop.change_order" if number % 2 else "requester"
            thread_id = rows.new_thread(store, actor)
            if number % 4 < 2:
                call_id = rows.waiting_call(store, rows.answer(store, thread_id), f"call-{number}", approver=approver)
                ToolCall.objects.filter(pk=call_id).update(actor_ref=actor.ref, tenant_ref=None)
            else:
                scope = ProposalScope(tenant_ref=None, actor_ref=actor.ref, thread_id=thread_id)
                proposal_rows.made(store, f"proposal-{number}", scope, approver=approver)


def _open(client: Any, who: str) -> None:
    answer = client.get(INBOX, {"who": who})
    assert answer.status_code == 200, answer.status_code
    answer.render() if hasattr(answer, "render") else None


def _statements(client: Any, who: str) -> int:
    from django.db import connection

    seen: list[str] = []

    def count(execute: Any, sql: str, *rest: Any) -> Any:
        seen.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(count):
        _open(client, who)
    return len(seen)


def _timed(client: Any, who: str) -> float:
    start = time.perf_counter()
    _open(client, who)
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--waiting", type=int, default=10_000)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="postgres")
    parser.add_argument("--repeat", type=int, default=20)
    bench("inbox", parser, run)
