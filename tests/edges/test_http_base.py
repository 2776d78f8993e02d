"""What every route does before its own work: who acts, CSRF, limits of a body, one shape of error."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client, override_settings

from agent.actors import ANONYMOUS_COOKIE
from tests.edges.urls import ApiKey, EchoView, Never, OpenApiKey

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.edges.urls")]

JSON = "application/json"


@pytest.fixture(autouse=True)
def _no_work_yet() -> Iterator[None]:
    EchoView.work.clear()
    yield
    EchoView.work.clear()


@pytest.fixture
def alice() -> User:
    user = User.objects.create_user("alice", password="demo", is_staff=True)
    user.groups.add(Group.objects.create(name="support"), Group.objects.create(name="billing"))
    return user


@pytest.fixture
def browser(alice: User) -> Client:
    """A browser that is signed in, with CSRF checked as in production."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    return client


def basic(name: str = "alice", password: str = "demo") -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def token_of(client: Client) -> str:
    client.cookies["csrftoken"] = "a" * 32
    return "a" * 32


def error(response: Any) -> tuple[int, str | None]:
    assert response["Content-Type"] == JSON
    body = response.json()
    assert set(body) <= {"message", "code", "fields", "period"}
    assert body["message"]
    return response.status_code, body.get("code")


# ---- who acts -------------------------------------------------------------------------------------------------------


def test_a_signed_in_user_acts_by_primary_key_with_groups_and_flags_as_roles(browser: Client, alice: User) -> None:
    actor = browser.get("/echo").json()["actor"]
    assert actor == {"ref": str(alice.pk), "roles": ["billing", "support", "staff"], "tenantRef": None}


def test_nobody_is_told_to_sign_in_without_a_password_prompt_of_the_browser(client: Client) -> None:
    response = client.get("/echo")
    assert error(response) == (401, "not_authenticated")
    assert not response["WWW-Authenticate"].lower().startswith("basic")


def test_an_inactive_user_is_nobody(browser: Client, alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert error(browser.get("/echo")) == (401, "not_authenticated")


def test_wrong_credentials_are_401_not_403(client: Client, alice: User) -> None:
    assert error(client.get("/echo", headers=basic(password="wrong"))) == (401, "not_authenticated")


def test_groups_cost_one_query(browser: Client, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(3):  # session, user, groups
        browser.get("/echo")


@override_settings(AGENT={"ACTOR_RESOLVER": "tests.edges.urls.AsyncResolver"})
def test_a_resolver_may_be_async(client: Client) -> None:
    assert client.get("/echo").json()["actor"]["ref"] == "async"


@override_settings(AGENT={"ACTOR_RESOLVER": "tests.edges.urls.FailingResolver"})
def test_a_failing_resolver_is_a_500_and_lets_nobody_pass(client: Client) -> None:
    client.raise_request_exception = False
    assert error(client.get("/echo"))[0] == 500


# ---- the anonymous cookie -------------------------------------------------------------------------------------------

ANONYMOUS = {"ACTOR_RESOLVER": "agent.actors.AnonymousCookieResolver"}


@override_settings(AGENT=ANONYMOUS)
def test_a_visitor_is_given_a_cookie_and_is_known_by_it() -> None:
    client = Client()
    first = client.get("/echo")
    cookie = first.cookies[ANONYMOUS_COOKIE]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    assert cookie["max-age"] == 365 * 24 * 3600
    assert not cookie["secure"]
    actor = first.json()["actor"]
    assert actor["ref"].startswith("anon:")
    assert len(actor["ref"]) == 5 + 64
    assert actor["roles"] == ["anonymous"]
    second = client.get("/echo")
    assert second.json()["actor"] == actor
    assert ANONYMOUS_COOKIE not in second.cookies


@override_settings(AGENT=ANONYMOUS)
def test_the_cookie_is_secure_over_https() -> None:
    assert Client().get("/echo", secure=True).cookies[ANONYMOUS_COOKIE]["secure"]


@override_settings(AGENT=ANONYMOUS)
@pytest.mark.parametrize("value", ["", "short", "x" * 42, "x" * 44, "é" * 43, "x" * 4000])
def test_a_cookie_that_we_did_not_make_is_replaced(value: str) -> None:
    client = Client()
    client.cookies[ANONYMOUS_COOKIE] = value
    assert client.get("/echo").cookies[ANONYMOUS_COOKIE].value != value


@override_settings(AGENT=ANONYMOUS)
def test_a_signed_in_user_wins_over_the_cookie(browser: Client, alice: User) -> None:
    browser.cookies[ANONYMOUS_COOKIE] = "x" * 43
    response = browser.get("/echo")
    assert response.json()["actor"]["ref"] == str(alice.pk)
    assert ANONYMOUS_COOKIE not in response.cookies


@override_settings(AGENT=ANONYMOUS)
@pytest.mark.parametrize("known", [True, False])
def test_a_visitor_needs_a_csrf_token_too(*, known: bool) -> None:
    client = Client(enforce_csrf_checks=True)
    if known:
        client.get("/echo")
    response = client.post("/echo", {"message": "hi"}, content_type=JSON)
    assert error(response) == (403, "forbidden")
    assert ANONYMOUS_COOKIE not in response.cookies
    assert not EchoView.work
    token = token_of(client)
    assert client.post("/echo", {"message": "hi"}, content_type=JSON, headers={"X-CSRFToken": token}).status_code == 200


# ---- the gateway's headers ------------------------------------------------------------------------------------------

GATEWAY = {"ACTOR_RESOLVER": "agent.actors.HeaderActorResolver", "TRUSTED_GATEWAY": True}


@override_settings(AGENT=GATEWAY)
def test_a_gateway_names_the_actor_and_needs_no_csrf_token() -> None:
    client = Client(enforce_csrf_checks=True)
    client.cookies["sticky"] = "1"
    headers = {"x-actor-id": "u-1", "x-actor-role": "agent, lead,,agent", "x-tenant-ref": ""}
    response = client.post("/echo", {"message": "hi"}, content_type=JSON, headers=headers)
    assert response.json()["actor"] == {"ref": "u-1", "roles": ["agent", "lead"], "tenantRef": ""}


@override_settings(AGENT=GATEWAY)
@pytest.mark.parametrize("headers", [{}, {"x-actor-id": ""}, {"x-actor-id": "x" * 256}, {"x-actor-role": "staff"}])
def test_a_gateway_that_names_nobody_is_a_401(client: Client, headers: dict[str, str]) -> None:
    assert error(client.get("/echo", headers=headers)) == (401, "not_authenticated")


@override_settings(AGENT=GATEWAY)
def test_a_gateways_utf8_is_read_as_such(client: Client) -> None:
    headers = {"x-actor-id": "jos\u00e9".encode().decode("latin-1")}
    assert client.get("/echo", headers=headers).json()["actor"]["ref"] == "jos\u00e9"


@override_settings(AGENT={**GATEWAY, "TRUSTED_GATEWAY": False})
def test_headers_are_not_believed_without_a_trusted_gateway(client: Client) -> None:
    client.raise_request_exception = False
    assert error(client.get("/echo", headers={"x-actor-id": "root"}))[0] == 500


# ---- CSRF -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ('{"message": "hi"}', JSON),
        ('{"message": "hi"}', "text/plain"),
        ("message=hi", "application/x-www-form-urlencoded"),
        ("", "multipart/form-data; boundary=x"),
    ],
)
def test_a_foreign_page_cannot_post_with_a_session(browser: Client, body: str, kind: str) -> None:
    assert error(browser.generic("POST", "/echo", body, content_type=kind)) == (403, "forbidden")
    assert not EchoView.work


def test_the_own_page_posts_with_its_token(browser: Client) -> None:
    token = token_of(browser)
    response = browser.post("/echo", {"message": "hi"}, content_type=JSON, headers={"X-CSRFToken": token})
    assert response.status_code == 200


def test_a_wrong_token_is_refused(browser: Client) -> None:
    token_of(browser)
    response = browser.post("/echo", {"message": "hi"}, content_type=JSON, headers={"X-CSRFToken": "b" * 32})
    assert error(response) == (403, "forbidden")


def test_a_caller_known_by_a_header_needs_no_token(alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.cookies["sticky"] = "1"
    assert client.post("/echo", {"message": "hi"}, content_type=JSON, headers=basic()).status_code == 200


@pytest.mark.parametrize(
    ("way", "cookies", "status"),
    [(ApiKey, True, 403), (ApiKey, False, 401), (OpenApiKey, True, 200)],
)
def test_a_hosts_own_authentication_is_taken_for_a_cookie_until_it_says_otherwise(
    alice: User, monkeypatch: pytest.MonkeyPatch, *, way: type, cookies: bool, status: int
) -> None:
    monkeypatch.setattr(EchoView, "authentication_classes", [way])
    client = Client(enforce_csrf_checks=True)
    if cookies:
        client.force_login(alice)
    response = client.post("/echo", {"message": "hi"}, content_type=JSON, headers={"X-Api-Key": "k"})
    assert response.status_code == status


# ---- what is asked and what is answered -----------------------------------------------------------------------------


@pytest.mark.parametrize("accept", ["text/event-stream", JSON, "*/*", "text/html", "image/png", "nonsense"])
@pytest.mark.parametrize("query", ["", "?format=csv", "?format=json"])
def test_no_accept_and_no_format_changes_the_answer(browser: Client, accept: str, query: str) -> None:
    response = browser.get(f"/echo{query}", headers={"Accept": accept})
    assert response.status_code == 200
    assert response["Content-Type"] == JSON
    assert b'"odd":"\\ud800"' in response.content
    assert error(Client().get(f"/echo{query}", headers={"Accept": accept})) == (401, "not_authenticated")


def test_a_trailing_slash_is_accepted_too(browser: Client) -> None:
    assert browser.get("/echo/").status_code == 200


@pytest.mark.parametrize("method", ["PUT", "OPTIONS", "TRACE", "DELETE", "BREW"])
def test_another_method_is_a_405_that_names_the_right_ones(browser: Client, method: str) -> None:
    response = browser.generic(method, "/echo", headers={"X-CSRFToken": token_of(browser)})
    assert error(response) == (405, None)
    assert {"GET", "POST"} <= {name.strip() for name in response["Allow"].split(",")}


NESTED = "[" * 100_000


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        ("", JSON, (400, "invalid_body")),
        ("{", JSON, (400, "invalid_body")),
        ("[]", JSON, (400, "invalid_body")),
        ("null", JSON, (400, "invalid_body")),
        ('"text"', JSON, (400, "invalid_body")),
        ('{"message": NaN}', JSON, (400, "invalid_body")),
        ('{"message": ' + "9" * 5000 + "}", JSON, (400, "invalid_body")),
        (NESTED, JSON, (400, "invalid_body")),
        ('{"a":' * 50_000, JSON, (400, "invalid_body")),
        ('{"message":"hi","pageContext":' + '{"a":' * 600 + "1" + "}" * 600 + "}", JSON, (200, None)),
        (b'{"message": "\xff"}', JSON, (400, "invalid_body")),
        (b"\xff\xfe{\x00}\x00", JSON, (400, "invalid_body")),
        ('{"message": "hi"}', "text/plain", (415, "unsupported_type")),
        ("message=hi", "application/x-www-form-urlencoded", (415, "unsupported_type")),
        ('{"message": "hi"}', "application/xml", (415, "unsupported_type")),
        ('{"message": "hi"}', "", (415, "unsupported_type")),
        ('{"message": "hi"}', "application/json; charset=utf-8", (200, None)),
        ('{"message": "hi"}', "Application/JSON", (200, None)),
        ('{"message": "' + "x" * (1 << 20) + '"}', JSON, (413, "too_large")),
        ('{"message": "' + "x" * ((1 << 20) - 20) + '"}', JSON, (200, None)),
    ],
)
def test_a_body_is_bounded_json_or_refused(alice: User, body: Any, kind: str, expected: tuple[int, str]) -> None:
    response = Client().generic("POST", "/echo", body, content_type=kind, headers=basic())
    if expected[0] == 200:
        assert response.status_code == 200
    else:
        assert error(response) == expected
        assert not EchoView.work


def wrong(name: str, values: Iterable[object], code: str = "invalid_body") -> list[tuple[str, object, str]]:
    return [(name, value, code) for value in values]


NO_NAMES: tuple[object, ...] = (1, True, [], {}, "", "x" * 256, "a\x00b", "\ud800", "\udfff x")
NO_FLAGS: tuple[object, ...] = (1, "true", [], {}, None, 0)
NO_CAPABILITIES: tuple[object, ...] = (
    1,
    "x",
    [],
    {},
    {"components": 1},
    {"components": [1]},
    {"components": [{"name": "a"}]},
)
NO_ATTACHMENTS: tuple[object, ...] = (
    *(1, "x", {}, ["x"], [1], [None], [[]], [{}]),
    [{"mediaId": "m", "url": "https://x"}],
    [{"mediaId": ""}],
    [{"mediaId": 5}],
    [{"mediaId": "a\x00"}],
    [{"mediaId": str(number)} for number in range(11)],
)
FIELDS = [
    *wrong("message", (1, True, [], {}, 1.5, None)),
    *wrong("message", ("", " ", "\u200b", "\u200b \u200b", "\x00", "\n\t\u3000"), "empty_message"),
    *wrong("threadId", NO_NAMES),
    *wrong("agent", NO_NAMES),
    *wrong("persona", NO_NAMES),
    *wrong("model", NO_NAMES),
    *wrong("attachments", NO_ATTACHMENTS),
    *wrong("pageContext", (1, "x", [], True, {"x": "y" * 32768})),
    *wrong("regenerate", NO_FLAGS),
    *wrong("transient", NO_FLAGS),
    *wrong("mode", (1, "", "later", [], {}, None, True)),
    *wrong("uiCapabilities", NO_CAPABILITIES, "bad_capabilities"),
]


@pytest.mark.parametrize(("name", "value", "code"), FIELDS)
def test_a_field_of_a_wrong_kind_is_named(alice: User, name: str, value: object, code: str) -> None:
    body = json.dumps({"message": "hi", name: value})
    response = Client().generic("POST", "/echo", body, content_type=JSON, headers=basic())
    assert error(response) == (400, code)
    assert all(key.partition(".")[0] == name for key in response.json()["fields"])
    assert not EchoView.work


def test_text_with_nul_surrogates_and_emoji_is_taken_as_it_is(alice: User) -> None:
    body = json.dumps({"message": "a\x00 \ud800 \U0001f9d1\u200d\U0001f52c", "unknown": 1, "agent": None})
    response = Client().generic("POST", "/echo", body, content_type=JSON, headers=basic())
    assert response.json()["values"]["message"] == "a\x00 \ud800 \U0001f9d1\u200d\U0001f52c"


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 201, "\u00e9", "a\tb"])
def test_an_idempotency_key_is_visible_ascii(alice: User, key: str) -> None:
    headers = {**basic(), "Idempotency-Key": key}
    response = Client().generic("POST", "/echo", '{"message": "hi"}', content_type=JSON, headers=headers)
    assert error(response) == (400, "invalid_body")
    assert list(response.json()["fields"]) == ["Idempotency-Key"]


@pytest.mark.parametrize(("value", "limit"), [("1", 1), ("200", 200), ("201", 200), ("9" * 5000, 200), ("0007", 7)])
def test_a_limit_above_its_maximum_becomes_it(browser: Client, value: str, limit: int) -> None:
    assert browser.get(f"/echo?limit={value}").json()["limit"] == limit


@pytest.mark.parametrize("value", ["", "-1", "1.5", "x", "%2B5", "%00", "%D9%A1", "1%0A", "NaN", "1e3", "%ED%A0%80"])
@pytest.mark.parametrize("name", ["limit", "after"])
def test_a_query_number_is_a_whole_number(browser: Client, name: str, value: str) -> None:
    response = browser.get(f"/echo?{name}={value}")
    assert error(response) == (400, "invalid_body")
    assert list(response.json()["fields"]) == [name]


def test_a_limit_of_zero_is_refused(browser: Client) -> None:
    assert error(browser.get("/echo?limit=0")) == (400, "invalid_body")


def test_after_wins_over_last_event_id(browser: Client) -> None:
    assert browser.get("/echo?after=3", headers={"Last-Event-ID": "9"}).json()["cursor"] == 3
    assert browser.get("/echo?after=3", headers={"Last-Event-ID": "no"}).json()["cursor"] == 3
    assert browser.get("/echo", headers={"Last-Event-ID": "9"}).json()["cursor"] == 9
    assert browser.get("/echo").json()["cursor"] == 0
    assert error(browser.get("/echo", headers={"Last-Event-ID": "no"})) == (400, "invalid_body")


# ---- the host's own rules -------------------------------------------------------------------------------------------


def test_a_fault_of_ours_is_logged_and_told_by_reference_only(
    browser: Client, caplog: pytest.LogCaptureFixture
) -> None:
    browser.raise_request_exception = False
    with caplog.at_level(logging.ERROR, "agent.api"):
        response = browser.get("/broken")
    assert error(response) == (500, None)
    assert b"sk-secret" not in response.content
    record = next(record for record in caplog.records if record.name == "agent.api")
    assert record.exc_info
    assert str(record.args[-1]) in response.json()["message"]  # type: ignore[index]


@override_settings(AGENT={"PERMISSION_CLASSES": ["tests.edges.urls.Closed"]})
def test_the_hosts_permissions_are_added(browser: Client) -> None:
    assert error(browser.get("/echo")) == (403, "forbidden")


@override_settings(AGENT={**GATEWAY, "PERMISSION_CLASSES": ["tests.edges.urls.Closed"]})
def test_a_refused_gateway_actor_is_403_not_401(client: Client) -> None:
    assert error(client.get("/echo", headers={"x-actor-id": "u"})) == (403, "forbidden")


def test_the_hosts_throttles_apply_without_the_quotas_code(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EchoView, "throttle_classes", [Never])
    response = browser.get("/echo")
    assert error(response) == (429, None)
    assert response["Retry-After"] == "2"


@override_settings(
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.auth.middleware.LoginRequiredMiddleware",
    ]
)
def test_a_host_that_wants_a_login_everywhere_does_not_redirect_our_callers(alice: User) -> None:
    assert error(Client().get("/echo")) == (401, "not_authenticated")
    assert Client().get("/echo", headers=basic()).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_no_view_runs_in_a_transaction_of_the_host(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    assert browser.get("/echo").json()["atomic"] is False
