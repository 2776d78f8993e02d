"""Every table as a file: whole, in order, safe in a spreadsheet, and for who may take it along."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from governance.admin.console import CONSOLE
from tests.console.conftest import SignIn
from tests.console.pages import links
from tests.governance.rows import NOON, entry, price, run, thread

pytestmark = pytest.mark.django_db

JUNE: dict[str, Any] = {"fromDay": "2026-06-01", "toDay": "2026-06-30"}
TABLES = [(screen.page, table) for screen in CONSOLE.values() for table in screen.tables]


def exported(client: Client, url: str, **query: Any) -> list[dict[str, str]]:
    answer = client.get(url, {**JUNE, "format": "csv", **query})
    assert answer.status_code == 200, answer.content[:500]
    assert answer["Content-Type"].startswith("text/csv")
    body = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    assert body[0] == "\ufeff"
    return list(csv.DictReader(io.StringIO(body[1:])))


@pytest.fixture
def everything(staff: SignIn) -> Client:
    names = ("view_spend", "view_reliability", "export_governance")
    return staff(*(f"governance.{name}" for name in names), "agent.view_actionproposal", "agent.view_modelprice")


@pytest.mark.parametrize(("page", "table"), TABLES)
def test_each_table_is_a_file_for_who_may_and_has_a_link(
    everything: Client, staff: SignIn, page: str, table: str
) -> None:
    message_thread = thread(title="tell-nobody-42")
    one = run(thread_id=message_thread.pk, status="failed")
    entry(thread_id=message_thread.pk, run_id=one.pk)
    entry(model_id="new", estimated_cost_nanos=None)
    price("m")
    url = f"/admin/governance/{page}/"
    rows = exported(everything, url, table=table)
    assert "tell-nobody" not in str(rows)
    viewing = ("governance.view_spend", "governance.view_reliability", "agent.view_actionproposal")
    viewer = staff(*viewing, "agent.view_modelprice")
    assert viewer.get(url, JUNE | {"format": "csv", "table": table}).status_code == 403
    by = {"by": table.removesuffix("s")} if table in {"agent", "person", "tenant", "purpose", "prompts"} else {}
    by |= {"modelId": "m"} if table == "history" else {}
    if table not in {"calls", "tools", "decisions"}:  # nothing was called or decided here
        found = links(everything.get(url, JUNE | by).content.decode())
        assert any(f"table={table}" in link for link in found)


def test_the_sum_of_the_ledger_is_the_figure_of_the_page_to_the_nano(finance: Client) -> None:
    for nanos in (1, 333_333_333, 10**12, None):
        entry(estimated_cost_nanos=nanos)
    rows = exported(finance, "/admin/governance/usage/")
    assert sum(Decimal(row["costUsd"]) for row in rows if row["costUsd"]) == Decimal("1000.333333334")
    assert [row["priced"] for row in rows].count("no") == 1
    page = finance.get("/admin/governance/spend/", JUNE).content.decode()
    assert "$1,000.333333334" in page


def test_prices_are_a_file_to_the_nano(everything: Client) -> None:
    price("m", input_per_million_nanos=1)
    (row,) = exported(everything, "/admin/governance/prices/", table="prices")
    assert (row["modelId"], row["inputPerMillionUsd"], row["cacheReadPerMillionUsd"]) == ("m", "0.000000001", "")


def test_a_file_is_narrowed_as_its_page_is(finance: Client) -> None:
    entry(estimated_cost_nanos=None, model_id="gpt-x")
    entry()
    assert len(exported(finance, "/admin/governance/usage/", priced="no")) == 1
    assert exported(finance, "/admin/governance/usage/", model="gpt-x")[0]["modelId"] == "gpt-x"


@pytest.mark.parametrize("text", ["=HYPERLINK(1)", "@x", "\tcmd", "\uff1d1+1", "-x"])
def test_no_cell_is_a_formula(finance: Client, text: str) -> None:
    entry(NOON, model_id=text)
    assert exported(finance, "/admin/governance/usage/")[0]["modelId"] == f"'{text}"


def test_a_table_that_is_not_there_is_refused_in_words(finance: Client) -> None:
    answer = finance.get("/admin/governance/usage/", {"format": "csv", "table": "moon"})
    assert answer.status_code == 400
    assert "table" in answer.content.decode()
