"""The demo of the README: one command serves all of it, tells what it is, and ends as it was asked."""

from __future__ import annotations

import base64
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.domain.model_calls import ReplyCall
from agent.testing.contracts.provider import VendorAnswer
from tests.demo_site import DemoSite, Event, demo_site, environment, manage, prepare, said, start
from tests.vendors.openai_chat import OpenAIChat
from tests.vendors.server import Vendor

pytestmark = [pytest.mark.once, pytest.mark.xdist_group("demo")]


@pytest.fixture(scope="module")
def site(demo_database: Callable[[], Path]) -> Iterator[DemoSite]:
    with demo_site(demo_database()) as running:
        yield running


@pytest.fixture
def env(demo_database: Callable[[], Path]) -> dict[str, str]:
    return environment(demo_database())


def frames(stream: list[Event], kind: str) -> list[dict[str, object]]:
    return [event.data for event in stream if event.data.get("kind") == kind]


def test_the_start_names_address_and_accounts(site: DemoSite) -> None:
    rest = site.process.stdout
    assert rest is not None
    while "Ctrl-C" not in site.output:
        site.lines.append(rest.readline())
    for word in (f"{site.url}/", "/admin/", "/agent/", "alice", "lead", "finance", "admin", '"demo"', "a script"):
        assert word in site.output


@pytest.mark.parametrize(
    "path", ["/login/", "/admin/login/", "/static/agent/chat/page.js", "/static/admin/css/base.css"]
)
def test_one_process_serves_pages_and_files(site: DemoSite, path: str) -> None:
    assert site.request("GET", path).status == 200


def test_a_stranger_is_sent_to_the_login_which_names_the_accounts(site: DemoSite) -> None:
    answer = site.request("GET", "/")
    assert (answer.status, answer.headers["Location"]) == (302, "/login/?next=/")
    page = site.request("GET", "/login/").body.decode()
    assert all(name in page for name in ("alice", "lead", "finance", "admin"))
    assert site.request("GET", "/agent/threads").status == 401


def test_the_question_of_the_readme_is_answered_from_the_shops_tables(site: DemoSite) -> None:
    stream = site.ask("where is order 1042?")
    assert (stream[0].name, stream[-1].name) == ("meta", "done")
    assert frames(stream, "tool-input-available")[0]["name"] == "look_up_order"
    output = frames(stream, "tool-output")[0]["output"]
    assert isinstance(output, dict)
    assert output["number"] == 1042
    assert "Order 1042 was delivered on" in said(stream)
    assert output["total"] in said(stream)


def test_two_orders_in_one_question_are_looked_up_together(site: DemoSite) -> None:
    stream = site.ask("where are 1042 and 1043?")
    assert len(frames(stream, "tool-output")) == 2
    assert "Order 1042" in said(stream)
    assert "Order 1043 is on its way" in said(stream)


def test_somebody_elses_order_is_told_like_one_that_is_not_there(site: DemoSite) -> None:
    theirs, none = site.ask("where is order 1001?"), site.ask("where is order 9001?")
    assert said(theirs).replace("1001", "9001") == said(none)
    assert frames(theirs, "tool-output") == []


def test_staff_look_up_any_order_and_any_customer(site: DemoSite) -> None:
    assert "Order 1001 was delivered" in said(site.ask("where is order 1001?", user="lead"))
    assert "Bruno Keller has" in said(site.ask("orders of Bruno", user="lead"))
    assert "Bruno Keller" not in said(site.ask("orders of Bruno", user="alice"))


def test_help_lists_what_the_script_understands_and_the_examples_work(site: DemoSite) -> None:
    offered = said(site.ask("help"))
    for example in ("where is order 1042?", "what happened to order 1042?", "list my orders", "count to 50 slowly"):
        assert example in offered
    assert "handed over to" in said(site.ask("what happened to order 1042?"))
    assert "Alice Moreno has 4 orders" in said(site.ask("list my orders"))
    assert said(site.ask("count to 3 slowly")) == "1 2 3"


def test_a_turn_is_in_the_database_when_its_stream_is_over(site: DemoSite) -> None:
    stream = site.ask("where is order 1043?")
    thread = str(stream[0].data["threadId"])
    stored = site.request("GET", f"/agent/threads/{thread}", user="alice").json
    assert [message["role"] for message in stored["messages"]] == ["user", "assistant", "assistant"]
    assert stored["messages"][-1]["content"] == said(stream)
    assert stored["title"] == "where is order 1043?"
    assert site.request("GET", f"/agent/threads/{thread}", user="lead").status == 403


def test_an_agent_asks_another_one_in_the_same_stream(site: DemoSite) -> None:
    told = [event.data for event in site.ask("what goes with order 1042?")]
    (asked,) = [frame for frame in told if frame.get("kind") == "tool-input-available" and "parentId" not in frame]
    aside = [frame for frame in told if frame.get("parentId") == asked["id"]]
    assert asked["name"] == "ask_stylist"
    assert {"step-start", "text", "tool-input-available", "tool-output", "step-finish"} <= {
        each["kind"] for each in aside
    }
    words = "".join(str(each["text"]) for each in aside if each["kind"] == "text")
    thread = site.request("GET", f"/agent/threads/{told[0]['threadId']}", user="alice").json
    assert thread["messages"][1]["toolResults"][0]["output"] == {"text": words}
    listed = site.request("GET", "/agent/threads", user="alice").json
    assert words not in [row["lastMessagePreview"] for row in listed]


def test_curl_as_in_the_readme_needs_no_cookie(site: DemoSite) -> None:
    basic = {"Authorization": "Basic " + base64.b64encode(b"alice:demo").decode()}
    body = {"message": "where is order 1042?"}
    with site.opened("POST", "/agent/chat", body=body, headers=basic) as response:
        assert response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        assert response.readline() == b"event: meta\n"
        assert b"event: done" in response.read()


def test_ctrl_c_ends_it_without_a_traceback_and_a_second_start_keeps_the_data(env: dict[str, str]) -> None:
    first = start(env)
    thread = first.ask("list my orders")[0].data["threadId"]
    assert first.finish() in {0, 130}, first.output
    assert "Traceback" not in first.output
    prepare(env)
    second = start(env)
    assert [row["id"] for row in second.request("GET", "/agent/threads", user="alice").json] == [thread]
    assert second.finish() in {0, 130}


def test_ctrl_c_ends_it_while_an_answer_is_being_written(env: dict[str, str]) -> None:
    running = start(env)
    body = {"message": "count to 200 slowly"}
    with running.opened("POST", "/agent/chat", user="alice", body=body) as answer:
        while b'"text"' not in answer.readline():
            pass
        assert running.finish() in {0, 130}, running.output
    assert "Traceback" not in running.output


def test_with_an_address_in_the_environment_a_real_model_uses_the_same_tools(env: dict[str, str]) -> None:
    with Vendor(OpenAIChat()) as vendor:
        vendor.answers += [
            VendorAnswer(
                calls=(ReplyCall(id="call_1", name="look_up_order", input={"number": 1042}),), stop="tool_calls"
            ),
            VendorAnswer(text=("It lies ", "at the reception.")),
        ]
        running = start({**env, "OPENAI_BASE_URL": f"{vendor.url}/v1", "OPENAI_API_KEY": vendor.secret})
        stream = running.ask("Has my lamp come?")
        assert running.finish() in {0, 130}, running.output
    assert said(stream) == "It lies at the reception."
    assert "Lantern Lane" in str(vendor.seen[0].body["messages"][0])
    assert "Brass desk lamp" in str(vendor.seen[1].body["messages"][-1])
    assert vendor.secret not in running.output


def test_a_busy_port_is_a_clear_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = manage("demo", env=environment(tmp_path / "demo.sqlite3", PORT=str(port)))
    assert done.returncode != 0
    assert f"Port {port} on 127.0.0.1 cannot be used: address already in use." in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "value", "words"), [("PORT", "http", "PORT must be"), ("HOST", "not an address", "HOST")]
)
def test_a_wrong_address_is_a_clear_error(tmp_path: Path, name: str, value: str, words: str) -> None:
    done = manage("demo", env=environment(tmp_path / "demo.sqlite3", **{name: value}))
    assert done.returncode != 0
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["demo_data", "demo"])
def test_outside_debug_the_demo_is_refused(tmp_path: Path, command: str) -> None:
    env = environment(tmp_path / "demo.sqlite3", DEBUG="0", SECRET_KEY="x" * 60, ALLOWED_HOSTS="steward.example")
    done = manage(command, env=env)
    assert done.returncode != 0
    assert "DEBUG" in done.stderr or "this machine" in done.stderr


SIGN_IN = """
from django.contrib.auth.models import User
from django.test import Client
User.objects.create_user("nora", password="demo")
print([Client().login(username=name, password="demo") for name in ("alice", "lead", "finance", "admin", "nora")])
"""


def test_outside_debug_the_public_password_opens_nothing(env: dict[str, str]) -> None:
    deployed = {"DEBUG": "0", "SECRET_KEY": "x" * 60, "ALLOWED_HOSTS": "testserver"}
    done = manage("shell", "--no-imports", "-c", SIGN_IN, env={**env, **deployed})
    assert done.stdout.splitlines() == ["[False, False, False, False, True]"], done.stderr


ERROR_PAGES = """
from django.test import Client, RequestFactory
from django.views import defaults
from django.views.csrf import csrf_failure
request = RequestFactory().get("/")
pages = [
    Client(raise_request_exception=False).get("/no-such-page/"),
    defaults.bad_request(request, ValueError()),
    defaults.permission_denied(request, ValueError()),
    defaults.server_error(request),
    csrf_failure(request),
]
for page in pages:
    print(page.status_code, page.content.decode().partition("<h1>")[2].partition("</h1>")[0])
"""


def test_error_pages_are_the_sites_own_words(env: dict[str, str]) -> None:
    deployed = {"DEBUG": "0", "SECRET_KEY": "x" * 60, "ALLOWED_HOSTS": "testserver", "SECURE_SSL_REDIRECT": "0"}
    done = manage("shell", "--no-imports", "-c", ERROR_PAGES, env={**env, **deployed})
    assert done.stdout.splitlines() == [
        "404 There is no such page",
        "400 That request was not understood",
        "403 This page is not for your account",
        "500 Something went wrong on our side",
        "403 Please try that again",
    ], done.stderr
