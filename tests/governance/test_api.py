"""The console's JSON API and its files: who may, what is refused, and that a file's sums are the screen's."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.http import HttpRequest
from django.test import override_settings
from django.urls import reverse

from agent.models import ModelPrice, Run, UsageEntry
from governance.export import decimal_usd, lines, safe
from governance.queries.values import UsageRow
from governance.sample import Sample, make
from tests.edges.conftest import Person, body_of, person
from tests.governance import rows

LAST = date(2026, 6, 20)
DAYS = "fromDay=2026-05-20&toDay=2026-06-20"
BASE = "/governance/api/"
SPEND, RELIABILITY = ("governance.view_spend",), ("governance.view_reliability",)
ROUTES = {
    "spend": SPEND,
    "top-threads": SPEND,
    "usage-page": SPEND,
    "quota?actor=1": SPEND,
    "reliability": RELIABILITY,
    "runs": RELIABILITY,
    "runs-page": RELIABILITY,
    "runs/x": RELIABILITY,
    "tools": RELIABILITY,
    "tool-calls": RELIABILITY,
    "tool-calls-page": RELIABILITY,
    "threads": (*SPEND, *RELIABILITY),
    "threads-page": (*SPEND, *RELIABILITY),
    "threads/x": (*SPEND, *RELIABILITY),
    "approvals": ("agent.view_actionproposal",),
    "approvals-page": ("agent.view_actionproposal",),
    "decisions-page": ("agent.view_actionproposal",),
    "pricing": ("agent.view_modelprice",),
}


def staff(name: str, *permissions: str) -> Person:
    made = person(name, is_staff=True)
    for each in permissions:
        app, _, codename = each.partition(".")
        made.user.user_permissions.add(Permission.objects.get(content_type__app_label=app, codename=codename))
    return made


@pytest.fixture
def sample(db: None) -> None:
    make(Sample(rows=300, seed=5, days=45, last=LAST, until=datetime(2026, 6, 20, 15, tzinfo=UTC)))
    rows.entry(datetime(2026, 6, 10, tzinfo=UTC), model_id="nobody-knows", estimated_cost_nanos=None)


@pytest.mark.parametrize("route", ROUTES)
def test_each_answer_needs_its_permission_and_no_other(db: None, client: Any, route: str) -> None:
    assert client.get(BASE + route).status_code == 401
    everything = {name for needed in ROUTES.values() for name in needed}
    needed = ROUTES[route]
    assert staff("others", *(everything - {*needed})).get(BASE + route).status_code == 403
    for number, name in enumerate(needed):
        answer = staff(f"allowed-{number}", name).get(BASE + route)
        assert answer.status_code == (404 if route.endswith("/x") else 200), answer.content
        assert answer["Content-Type"] == "application/json"


def test_the_overview_adds_up_to_the_nano(sample: None) -> None:
    told = staff("finance", *SPEND).get(f"{BASE}spend?{DAYS}").json()
    wanted = rows.cost(UsageEntry.objects.filter(created_at__gte=datetime(2026, 5, 20, tzinfo=UTC)))
    for cut in ("byModel", "byActor", "byAgent", "byPurpose", "byTenant", "trend"):
        assert sum(round((row["costUsd"] or 0) * 10**9) for row in told[cut]) == wanted
    assert list(told["byModel"][0]) == [
        "modelId",
        "requests",
        "inputTokens",
        "outputTokens",
        "costUsd",
        "unpricedRequests",
        "unpricedTokens",
    ]
    assert next(row["costUsd"] for row in told["byModel"] if row["modelId"] == "nobody-knows") is None
    assert set(told["summary"]) >= {"totalTokens", "reportedCostUsd", "actors", "threads"}


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("spend?colour=red", "colour"),
        ("spend?fromDay=tomorrow", "fromDay"),
        ("spend?fromDay=2026-06-02&toDay=2026-06-01", "fromDay"),
        ("usage-page?where[colour]=red", "where[colour]"),
        ("usage-page?where[priced]=maybe", "where[priced]"),
        ("usage-page?page=0", "page"),
        ("usage-page?limit=x", "limit"),
        ("usage-page?cursor=x", "cursor"),
        ("usage-page?format=xls", "format"),
        ("usage-page?actor=%00", "actor"),
        ("usage-page?fromDay=0001-01-01&toDay=2026-06-01", "fromDay"),
        ("spend?toDay=0001-01-01", "toDay"),
        ("reliability?fromDay=9999-12-31&toDay=9999-12-31", "fromDay"),
        ("runs-page?where[toDay]=9999-12-31", "toDay"),
        ("quota?actor=1&tenant=north", "tenant"),
        ("pricing?limit=1", "limit"),
    ],
)
def test_what_is_not_known_is_refused_by_name(db: None, query: str, named: str) -> None:
    answer = staff("finance", *SPEND, "governance.view_reliability", "agent.view_modelprice").get(BASE + query)
    assert answer.status_code == 400
    assert named in answer.json()["fields"]


def test_pages_end_by_number_where_the_cursor_begins(sample: None) -> None:
    finance = staff("finance", *SPEND)
    assert finance.get(f"{BASE}usage-page?page=401&limit=25").json()["code"] == "use_cursor"
    first = finance.get(f"{BASE}usage-page?{DAYS}&limit=10").json()
    second = finance.get(f"{BASE}usage-page?{DAYS}&limit=10&cursor={first['nextCursor']}").json()
    assert (first["page"], first["pageSize"], len(second["rows"])) == (1, 10, 10)
    assert not {row["id"] for row in first["rows"]} & {row["id"] for row in second["rows"]}


def test_text_and_costs_are_for_those_who_may_see_them(sample: None) -> None:
    run = Run.objects.filter(status="failed").first()
    assert run is not None
    support = staff("support", *RELIABILITY)
    told = support.get(f"{BASE}runs/{run.pk}").json()
    assert told["run"]["errorMessage"] is None
    assert told["thread"]["title"] is None
    assert not {"usage", "total"} & told.keys()
    assert "costUsd" not in told["run"]
    assert support.get(f"{BASE}threads-page?{DAYS}&where[title]=lamp").status_code == 403
    all_of_it = staff("lead", *RELIABILITY, *SPEND, "governance.view_conversations")
    told = all_of_it.get(f"{BASE}runs/{run.pk}").json()
    assert told["run"]["errorMessage"]
    assert told["total"]["costUsd"] is not None or told["total"]["unpricedRequests"]


def only_north(request: HttpRequest) -> list[str]:
    return ["north"]


def test_titles_of_the_dearest_conversations_are_null_without_the_right_to_read_them(db: None) -> None:
    rows.entry(thread_id=rows.thread(title="tell-nobody-42").pk)
    (told,) = staff("finance", *SPEND).get(f"{BASE}top-threads?{DAYS}").json()
    assert told["title"] is None
    (told,) = staff("reader", *SPEND, "governance.view_conversations").get(f"{BASE}top-threads?{DAYS}").json()
    assert told["title"] == "tell-nobody-42"
    body = staff("taker", *SPEND, "governance.export_governance").get(f"{BASE}top-threads?{DAYS}&format=csv")
    assert b"tell-nobody" not in b"".join(body.streaming_content)


def test_the_console_scope_holds_for_answers_and_files(sample: None) -> None:
    finance = staff("finance", *SPEND, "governance.export_governance")
    with override_settings(AGENT={"CONSOLE_SCOPE": only_north}):
        assert [row["tenantRef"] for row in finance.get(f"{BASE}spend?{DAYS}").json()["byTenant"]] == ["north"]
        assert {row["tenantRef"] for row in table(finance, f"usage-page?{DAYS}")} == {"north"}


def table(who: Person, path: str) -> list[dict[str, str]]:
    answer = who.get(f"{BASE}{path}&format=csv")
    assert answer.status_code == 200, answer.content
    text = body_of(answer).decode("utf-8")
    assert text.startswith("\ufeff")
    return list(csv.DictReader(io.StringIO(text[1:])))


def test_a_file_holds_every_row_and_its_sums_are_the_screens(sample: None, caplog: pytest.LogCaptureFixture) -> None:
    finance = staff("finance", *SPEND, "governance.export_governance")
    with caplog.at_level("INFO", "governance.export"):
        found = table(finance, f"usage-page?{DAYS}&model=large-4")
    screen = finance.get(f"{BASE}spend?{DAYS}&model=large-4").json()["summary"]
    assert len(found) == screen["requests"] > 25
    nanos = sum(int(row["costUsd"].replace(".", "")) for row in found if row["priced"] == "yes")
    assert nanos == round(screen["costUsd"] * 10**9)
    assert f"exported usage-page: {len(found)} rows of {DAYS}&model=large-4" in caplog.text
    unpriced = table(finance, f"usage-page?{DAYS}&where[priced]=no")
    assert {(row["costUsd"], row["priced"]) for row in unpriced} == {("", "no")}


def test_a_file_needs_a_permission_of_its_own(sample: None) -> None:
    assert staff("finance", *SPEND).get(f"{BASE}usage-page?format=csv").status_code == 403


def test_a_long_file_says_that_it_was_cut(sample: None) -> None:
    finance = staff("finance", *SPEND, "governance.export_governance")
    with override_settings(AGENT={"EXPORT_MAX_ROWS": 30}):
        found = table(finance, f"usage-page?{DAYS}")
    assert len(found) == 31
    assert found[-1]["id"] == "# cut after 30 rows"


@pytest.mark.parametrize("text", ["=HYPERLINK(1)", "@x", "\tx", "\rx", "+1+1", "-1+2", "\uff1dA1"])
def test_text_is_no_formula(text: str) -> None:
    """B125: cells of text are made harmless, numbers stay numbers."""
    assert safe(text) == f"'{text}"
    assert (safe("-1.50"), safe("+3"), safe("plain"), safe('say "a"\n')) == ("-1.50", "+3", "plain", 'say "a"\n')


def test_money_is_written_without_a_float() -> None:
    assert decimal_usd(10**21 + 1) == "1000000000000.000000001"
    assert decimal_usd(-5) == "-0.000000005"
    assert next(lines(UsageRow, []))[-1] == "priced"


def test_a_price_is_put_in_force_and_malformed_ones_are_not(db: None) -> None:
    keeper = staff("keeper", "agent.change_modelprice", "agent.view_modelprice")
    body = {"modelId": "m", "inputPer1M": 0.1, "outputPer1M": 1e-9, "cacheReadPer1M": None}
    answer = keeper.post(f"{BASE}pricing", body)
    assert answer.status_code == 201, answer.content
    assert answer.json()["isCurrent"] is True
    stored = ModelPrice.objects.get()
    assert (stored.input_per_million_nanos, stored.output_per_million_nanos) == (10**8, 1)
    assert (stored.source, stored.created_by_ref) == ("api", str(keeper.user.pk))
    for wrong, named in (
        ({"inputPer1M": -1}, "inputPer1M"),
        ({"inputPer1M": 1e-10}, "inputPer1M"),
        ({"inputPer1M": True}, "inputPer1M"),
        ({"colour": 1}, "colour"),
        ({"inputPer1M": "1_0"}, "inputPer1M"),
        ({"note": "x" * 501}, "note"),
        ({"effectiveFrom": "now"}, "effectiveFrom"),
        ({"effectiveFrom": "0001-01-01T00:00:00+14:00"}, "effectiveFrom"),
        ({"effectiveFrom": "9999-12-31T23:59:59-14:00"}, "effectiveFrom"),
        ({"modelId": None}, "modelId"),
    ):
        answer = keeper.post(f"{BASE}pricing", body | wrong)
        assert (answer.status_code, list(answer.json()["fields"])) == (400, [named])
    at = {"effectiveFrom": "2026-01-01T00:00:00Z"}
    assert keeper.post(f"{BASE}pricing", body | at | {"inputPer1M": 1}).status_code == 201
    assert keeper.post(f"{BASE}pricing", body | at | {"inputPer1M": 2}).status_code == 409
    told = keeper.get(f"{BASE}pricing?modelId=m").json()
    assert [row["inputPer1M"] for row in told["history"]] == [0.1, 1.0]
    assert [row["modelId"] for row in told["current"]] == ["m"]
    assert staff("reader", "agent.view_modelprice").post(f"{BASE}pricing", body).status_code == 403
    assert keeper.get(f"{BASE}pricing?format=csv").status_code == 403
    file = staff("taker", "agent.view_modelprice", "governance.export_governance").get(f"{BASE}pricing?format=csv")
    assert b",0.100000000,0.000000001," in b"".join(file.streaming_content)


def test_the_quota_of_anybody_is_told(db: None) -> None:
    finance = staff("finance", *SPEND)
    assert finance.get(f"{BASE}quota?actor={finance.user.pk}").json() == {"windows": []}
    with override_settings(AGENT={"QUOTA": {"day": {"usd": 1}}}):
        (window,) = finance.get(f"{BASE}quota?actor={finance.user.pk}").json()["windows"]
        assert window["limitUsd"] == 1.0
        assert finance.get(f"{BASE}quota").status_code == 400


def test_every_route_is_documented_with_its_permission(db: None, settings: Any) -> None:
    from drf_spectacular.generators import SchemaGenerator  # noqa: PLC0415

    found = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    ours = {path: methods for path, methods in found["paths"].items() if path.startswith(BASE)}
    told = {path.removeprefix(BASE).partition("/{")[0] for path in ours}
    assert told == {route.partition("?")[0].removesuffix("/x") for route in ROUTES} | {"stream"}
    for methods in ours.values():
        for operation in methods.values():
            assert "Permission: `" in operation["description"]
    assert json.dumps(found)
    assert reverse("governance:spend") == f"{BASE}spend"


def test_who_may_see_spend_sees_the_ledger_in_the_admin(db: None) -> None:
    rows.entry()
    path = reverse("admin:agent_usageentry_changelist")
    assert staff("finance", *SPEND).get(path).status_code == 200
    assert staff("support", *RELIABILITY).get(path).status_code == 403
    assert b"usageentry" in staff("other", *SPEND).get(reverse("admin:index")).content
