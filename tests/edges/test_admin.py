"""The plain admin shows every table to who may see it, changes none, and keeps what was said to who may read it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from html import unescape
from typing import Any
from urllib.parse import quote

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.db import connection, models
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import path, reverse

import agent.admin
import governance.admin
from agent.admin.base import LISTED, ReadOnlyAdmin
from agent.models import Message, ModelPrice, Run, StreamFrame, Thread, ThreadSummary, ToolCall, UsageEntry
from agent.models.fields import CleanCharField, CleanTextField, JsonTextField
from governance.models import UsageRollup
from tests.edges.admin_rows import MARKER, OPEN, TEXT, full_row

ops = admin.AdminSite(name="ops")
agent.admin.register(ops)
governance.admin.register(ops)
urlpatterns = [path("admin/", admin.site.urls), path("ops/", ops.urls)]

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]

SCREENS = {**agent.admin.SCREENS, **governance.admin.SCREENS}
READ = "view_conversations"
every_table = pytest.mark.parametrize("model", SCREENS, ids=lambda model: model.__name__)

SignIn = Callable[..., Client]


@pytest.fixture(autouse=True)
def no_sidebar(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of all tables beside each page is Django's, and takes most of its time."""
    monkeypatch.setattr(admin.site, "enable_nav_sidebar", False)
    monkeypatch.setattr(ops, "enable_nav_sidebar", False)


@pytest.fixture
def staff() -> SignIn:
    """Signs in a member of staff who may view these tables, and has these further permissions."""

    def sign_in(views: Iterable[type[models.Model]] = (), *, also: Iterable[str] = ()) -> Client:
        user = User.objects.create_user(f"staff{User.objects.count()}", is_staff=True)
        names = [f"view_{model._meta.model_name}" for model in views]
        user.user_permissions.set(Permission.objects.filter(codename__in=[*names, *also]))
        return signed_in(user)

    return sign_in


@pytest.fixture
def superuser() -> Client:
    return signed_in(User.objects.create_superuser("root"))


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def saved(model: type[models.Model], number: int = 1, **given: object) -> models.Model:
    row = full_row(model, number, **given)
    row.save(force_insert=True)
    return row


def listed(model: type[models.Model], site: str = "admin") -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist", current_app=site)


def page_of(row: models.Model, act: str = "change") -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_{act}", args=[row.pk])


def body(client: Client, url: str, **query: Any) -> str:
    response = client.get(url, query)
    assert response.status_code == 200, f"{url} answered {response.status_code}"
    return response.content.decode()


def result_rows(html: str) -> int:
    table = re.search(r'(?s)<table id="result_list">.*?</table>', html)
    return table[0].count("<tr>") - 1 if table else 0


def statements(client: Client, url: str) -> list[str]:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        body(client, url)
    return [query["sql"] for query in captured]


# ---- declarations -----------------------------------------------------------------------------------------------


def test_every_table_has_a_screen() -> None:
    with_table = {model for name in ("agent", "governance") for model in apps.get_app_config(name).get_models()}
    assert set(SCREENS) == {model for model in with_table if model._meta.managed}
    assert all(type(admin.site.get_model_admin(model)) is SCREENS[model] for model in SCREENS)


@every_table
@pytest.mark.once
def test_every_column_of_text_is_either_hidden_or_open_on_purpose(model: type[models.Model]) -> None:
    free = (CleanCharField, CleanTextField, JsonTextField)
    texts = {column.attname for column in model._meta.concrete_fields if isinstance(column, free)}
    hidden, shown = TEXT.get(model._meta.db_table, set()), OPEN.get(model._meta.db_table, set())
    assert SCREENS[model].text == hidden
    assert texts <= hidden | shown
    assert hidden.isdisjoint(shown)


@every_table
@pytest.mark.once
def test_lists_are_ordered_and_searched_by_an_index(model: type[models.Model]) -> None:
    screen = SCREENS[model]
    attnames = {
        name: column.attname for column in model._meta.concrete_fields for name in (column.name, column.attname)
    }
    unique = [one for one in model._meta.constraints if isinstance(one, models.UniqueConstraint)]
    keys = [[model._meta.pk.attname]]
    keys += [[attnames[name] for name in one.fields] for one in (*model._meta.indexes, *unique)]
    order = [model._meta.pk.attname if one == "-pk" else one.removeprefix("-") for one in screen.ordering]
    led = order[:-1] if len(order) > 1 and order[-1] == model._meta.pk.attname else order
    assert any(key[: len(led)] == led for key in keys)
    assert all(any(key[0] == name for key in keys) for name in screen.search_fields)


# ---- who sees what ----------------------------------------------------------------------------------------------


@every_table
@pytest.mark.once
def test_a_superuser_opens_list_page_and_history_and_reads_all(model: type[models.Model], superuser: Client) -> None:
    row = saved(model)
    assert result_rows(body(superuser, listed(model))) >= 1
    page = body(superuser, page_of(row))
    assert page.count(MARKER) >= len(TEXT.get(model._meta.db_table, ()))
    assert not re.search(r"<(select|textarea)|type=.(submit|text|checkbox)", page.split("content-main")[1])
    body(superuser, page_of(row, "history"))


@every_table
@pytest.mark.once
def test_who_may_not_read_conversations_sees_rows_without_text(model: type[models.Model], staff: SignIn) -> None:
    row, finance = saved(model), staff([*SCREENS], also=["view_spend", "view_reliability"])
    pages = [body(finance, url) for url in (listed(model), page_of(row), page_of(row, "history"))]
    assert not [html for html in pages if MARKER in html]
    assert result_rows(pages[0]) >= 1
    assert not [name for name in TEXT.get(model._meta.db_table, set()) - {"title"} if f'field-{name}"' in pages[1]]


@every_table
@pytest.mark.once
def test_who_may_read_conversations_reads_them_in_tables_that_they_may_view(
    model: type[models.Model], staff: SignIn
) -> None:
    row, reader = saved(model), staff([model], also=[READ])
    assert (MARKER in body(reader, page_of(row))) == (model._meta.db_table in TEXT)


def test_staff_without_permission_find_no_entry(staff: SignIn) -> None:
    stranger = staff(also=[READ, "view_reliability", "add_thread", "change_thread", "delete_thread"])
    index = body(stranger, reverse("admin:index"))
    for model in SCREENS:
        assert listed(model) not in index
        row = saved(model)
        for url in (listed(model), page_of(row), page_of(row, "history")):
            assert stranger.get(url).status_code == 403


def test_staff_find_the_tables_that_they_may_view(staff: SignIn) -> None:
    index = body(staff([Thread, Run]), reverse("admin:index"))
    assert [model for model in SCREENS if f'href="{listed(model)}"' in index] == [Run, Thread]


def test_a_title_is_text(staff: SignIn, superuser: Client) -> None:
    row, finance = saved(Thread, id="0192f0c1-7b3a"), staff([Thread])
    for url in (listed(Thread), page_of(row)):
        assert "Conversation 0192f0c1" in body(finance, url)
        assert "Conversation 0192f0c1" not in body(superuser, url)


def test_links_to_related_rows_lead_where_the_viewer_may_go(staff: SignIn, superuser: Client) -> None:
    row = saved(Thread)
    messages = f"{listed(Message)}?thread_id={row.pk}"
    assert messages in body(superuser, page_of(row))
    assert messages not in body(staff([Thread]), page_of(row))
    saved(Message, 1, thread=row)
    assert result_rows(body(superuser, messages)) == 1


# ---- nothing changes --------------------------------------------------------------------------------------------


@every_table
@pytest.mark.once
def test_not_even_a_superuser_adds_changes_or_deletes(model: type[models.Model], superuser: Client) -> None:
    row = saved(model)
    before = [*model._default_manager.values()]
    values = dict.fromkeys(before[0], "1")
    add = page_of(row).replace(f"{quote(str(row.pk))}/change/", "add/")
    for url in (add, page_of(row), page_of(row, "delete")):
        assert superuser.post(url, {**values, "post": "yes", "_save": "Save"}).status_code == 403
    for url in (add, page_of(row, "delete")):
        assert superuser.get(url).status_code == 403
    act = {"action": "delete_selected", "_selected_action": [str(row.pk)], "post": "yes", "index": "0"}
    superuser.post(listed(model), act)
    assert [*model._default_manager.values()] == before


# ---- what is found ----------------------------------------------------------------------------------------------


@every_table
def test_a_search_finds_whole_values_and_no_text(model: type[models.Model], staff: SignIn) -> None:
    row, finance = saved(model), staff([model])
    for name in SCREENS[model].search_fields:
        assert result_rows(body(finance, listed(model), q=f"{getattr(row, name)} ")) >= 1, name
    assert result_rows(body(finance, listed(model), **{name: getattr(row, name)})) >= 1
    for part in (MARKER, str(row.pk)[:-1] or "x", "' OR 1 --"):
        assert result_rows(body(finance, listed(model), q=part)) == 0


@pytest.mark.parametrize("term", ["\x00", "\ud800".encode("utf-8", "surrogatepass"), '"', "9" * 5_000], ids=range(4))
def test_a_search_for_nonsense_is_no_error(term: str | bytes, superuser: Client) -> None:
    for model in (UsageEntry, Message, UsageRollup):
        body(superuser, listed(model), q=term)


@pytest.mark.parametrize(
    "lookup", ["content__startswith", "content", "thread__title__contains", "provider_state__isnull", "id__gt", "role"]
)
def test_a_list_is_not_asked_about_what_it_hides(lookup: str, staff: SignIn, caplog: pytest.LogCaptureFixture) -> None:
    saved(Message)
    assert staff([Message]).get(listed(Message), {lookup: MARKER}).status_code == 400
    assert "DisallowedModelAdminLookup" in caplog.text


def test_a_page_of_an_impossible_id_is_unknown(superuser: Client) -> None:
    for model, pk in ((Thread, "%00"), (Thread, "nope"), (UsageEntry, "nope"), (UsageEntry, "9" * 30)):
        response = superuser.get(f"{listed(model)}{pk}/change/")
        assert (response.status_code, response["Location"]) == (302, reverse("admin:index"))


def test_filters_offer_known_words_and_find_their_rows(superuser: Client) -> None:
    saved(ToolCall, 1, status="failed")
    saved(UsageEntry, 1, cost_nanos=None)
    assert "?status=pending_approval" in body(superuser, listed(ToolCall))
    assert result_rows(body(superuser, listed(ToolCall), status="failed")) == 1
    assert result_rows(body(superuser, listed(ToolCall), status="executed")) == 0
    assert result_rows(body(superuser, listed(UsageEntry), priced="no")) == 1
    assert "unpriced" in body(superuser, listed(UsageEntry))


# ---- what it costs ----------------------------------------------------------------------------------------------


@every_table
def test_a_list_of_100_takes_the_statements_of_a_list_of_10(model: type[models.Model], superuser: Client) -> None:
    _fill(model, 10)
    ten = statements(superuser, listed(model))
    _fill(model, 100)
    hundred = statements(superuser, listed(model))
    assert len(hundred) == len(ten) <= 4
    assert all(f"LIMIT {LISTED + 1}" in sql for sql in hundred if "COUNT(" in sql.upper())


@every_table
@pytest.mark.only_on("sqlite")
def test_no_list_is_sorted_as_a_whole(model: type[models.Model], superuser: Client) -> None:
    saved(model)
    rows = superuser.get(listed(model)).context["cl"].queryset
    assert "USE TEMP B-TREE FOR ORDER BY" not in rows.explain()
    assert "USE TEMP B-TREE FOR ORDER BY" in rows.order_by("?").explain()


def test_a_list_reads_no_column_that_it_does_not_show(superuser: Client) -> None:
    saved(Message)
    [read] = [sql for sql in statements(superuser, listed(Message)) if "agent_name" in sql]
    assert not [name for name in TEXT["agent_message"] if re.search(rf"\b{name}\b", read)]


def test_a_list_leads_no_further_than_it_counts_and_says_so(superuser: Client) -> None:
    StreamFrame.objects.bulk_create(StreamFrame(run_id="r", seq=n, created_at_ms=n) for n in range(LISTED))
    assert "of more" not in body(superuser, listed(StreamFrame))
    StreamFrame.objects.create(run_id="r", seq=LISTED, created_at_ms=0)
    first = body(superuser, listed(StreamFrame), q="r")
    assert "Stream frames: the first 10000 of more" in first
    assert result_rows(body(superuser, listed(StreamFrame), p=100)) == 100
    assert superuser.get(listed(StreamFrame), {"p": 101}).status_code == 302


def test_an_order_in_the_address_is_ignored(superuser: Client) -> None:
    saved(Run, 1, id="a")
    saved(Run, 2, id="b")
    plain = body(superuser, listed(Run))
    assert plain.index(">b</a>") < plain.index(">a</a>")
    assert not [
        sql for sql in statements(superuser, f"{listed(Run)}?o=3.-1") if re.search(r"ORDER BY \S*(status|actor)", sql)
    ]


# ---- how it is shown --------------------------------------------------------------------------------------------


def test_stored_text_is_escaped_and_never_a_link(superuser: Client) -> None:
    evil = '<script>alert(1)</script>" onclick="x https://evil.example/'
    row = saved(Message, 1, content=evil, usage={evil: evil}, agent_name=evil)
    thread = saved(Thread, 2, title=evil, actor_ref=evil)
    for url in (page_of(row), listed(Message), page_of(thread), listed(Thread)):
        html = body(superuser, url)
        assert "<script>alert" not in html
        assert 'href="https://evil' not in html
        assert "<script>alert(1)</script>" in unescape(html)


def test_json_that_no_answer_can_carry_is_shown_escaped(superuser: Client) -> None:
    row = saved(Run, 1, input={"b": "\ud800", "a": "\x00é😀"})
    html = unescape(body(superuser, page_of(row)))
    assert '"b": "\\ud800",\n  "a": "\\u0000é😀"' in html


def test_a_very_long_text_is_cut_and_says_so(superuser: Client) -> None:
    row = saved(Message, 1, content="x" * 1_000_000)
    html = body(superuser, page_of(row))
    assert len(html) < 100_000
    assert "(1000000 characters, cut here)" in html


@pytest.mark.parametrize("language", ["de", "fr", "pt-br"])
def test_ids_keep_their_digits_together_and_figures_do_not(
    language: str, superuser: Client, settings: pytest.FixtureRequest
) -> None:
    settings.USE_THOUSAND_SEPARATOR = True  # type: ignore[attr-defined]
    row = saved(UsageEntry, 1, id=1_234_567, input_tokens=7_654_321, cost_nanos=1_234_567_891)
    superuser.cookies["django_language"] = language
    html = body(superuser, listed(UsageEntry))
    assert page_of(row) in html
    assert ">1234567</a>" in html
    assert "7654321" not in html
    assert "1,234567891" in html
    assert "1234567" in body(superuser, page_of(row))


def test_prices_are_shown_in_dollars(superuser: Client) -> None:
    saved(
        ModelPrice, 1, input_per_million_nanos=150_000_000, output_per_million_nanos=0, cache_read_per_million_nanos=1
    )
    html = body(superuser, listed(ModelPrice))
    assert all(f">{amount}<" in html for amount in ("0.15", "0.00", "0.000000001"))


@every_table
@pytest.mark.once
def test_another_admin_site_shows_the_same(model: type[models.Model], superuser: Client) -> None:
    row = saved(model)
    url = listed(model, "ops")
    html = body(superuser, url)
    assert url.startswith("/ops/")
    assert quote(str(row.pk)) in html
    assert 'href="/admin/' not in html


def _fill(model: type[models.Model], number: int) -> None:
    """Rows up to this number, each with its own values."""
    there = model._default_manager.count()
    model._default_manager.bulk_create([full_row(model, n) for n in range(there + 1, number + 1)])


def test_every_screen_is_read_only_by_its_base() -> None:
    assert all(issubclass(screen, ReadOnlyAdmin) for screen in SCREENS.values())


def test_a_summary_says_that_no_person_wrote_it(superuser: Client) -> None:
    html = body(superuser, page_of(saved(ThreadSummary)))
    assert "Made by a model out of the messages up to this number. It approves nothing." in html
