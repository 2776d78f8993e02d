"""The wheel in somebody else's site: what is in it, and the README's steps word for word, up to an answer."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Iterator
from email import message_from_string
from pathlib import Path
from uuid import UUID

import pytest

from tests.demo_site import said
from tests.packaging.host import ORDER, Host
from tests.packaging.served import Visitor, frames, served
from tests.packaging.steps import ROOT

pytestmark = pytest.mark.xdist_group("packaging")

PACKAGES = ("agent", "governance")
EXTRAS = {"postgres", "redis", "daphne", "openai", "anthropic", "prices", "otel", "unfold"}


def files_of(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


# ---- what is in it ---------------------------------------------------------------------------------------------------


def test_it_holds_every_file_of_both_packages_and_nothing_else(wheel: Path, checkout: Path) -> None:
    ours = {
        path.relative_to(checkout).as_posix()
        for package in PACKAGES
        for path in (checkout / package).rglob("*")
        if path.is_file()
    }
    held = {name for name in files_of(wheel) if ".dist-info/" not in name}
    assert held == ours


def test_it_holds_what_a_host_needs_beside_the_code(wheel: Path) -> None:
    held = files_of(wheel)
    assert {"agent/py.typed", "governance/py.typed"} <= held
    assert {"agent/templates/agent/chat.html", "agent/static/agent/chat/chat.css"} <= held
    assert {"agent/migrations/0001_initial.py", "governance/migrations/0001_initial.py"} <= held
    tops = {name.partition("/")[0] for name in held}
    assert tops == {*PACKAGES, next(top for top in tops if top.endswith(".dist-info"))}
    here = {path.relative_to(ROOT).as_posix() for name in PACKAGES for path in (ROOT / name).rglob("locale/*/*/*.mo")}
    assert here <= held, "compiled translations are ignored by git and must come along all the same"


def test_its_metadata_names_what_it_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = message_from_string(archive.read(name).decode())
    assert (metadata["Name"], metadata["Requires-Python"]) == ("django-steward", ">=3.11")
    assert set(metadata.get_all("Provides-Extra", [])) == EXTRAS
    needed = {line.partition(">")[0] for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line}
    assert {name.lower() for name in needed} == {
        *("django", "djangorestframework", "drf-spectacular", "pydantic", "channels", "celery", "pygal")
    }
    assert metadata["License-Expression"] == "MIT"


# ---- the README, word for word ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def visitor(host: Host) -> Iterator[Visitor]:
    with served(host.server("runserver"), host.environment, host.directory) as arrived:
        arrived.sign_in()
        yield arrived


def test_both_packages_come_from_the_wheel(host: Host, wheel: Path) -> None:
    place = host.environment.run(
        "python", "-c", "import agent, governance; print(agent.__file__, governance.__file__)", cwd=host.directory
    ).stdout.split()
    assert [Path(one).parent.parent for one in place] == [host.environment.site_packages] * 2
    installed = (next(host.environment.site_packages.glob("django_steward-*")) / "RECORD").read_text().splitlines()
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
        built = archive.read(name).decode().splitlines()

    def hashes(lines: list[str]) -> set[tuple[str, ...]]:
        return {tuple(row) for row in csv.reader(lines) if row[0].startswith(PACKAGES) and not row[0].endswith(".pyc")}

    assert hashes(installed) == hashes(built)


def test_the_checks_have_nothing_to_say(host: Host) -> None:
    assert "no issues" in host.printed["python manage.py check"]


def test_the_host_has_no_migration_of_ours_to_make(host: Host) -> None:
    assert "No changes detected" in host.manage("makemigrations", "--check", "--dry-run")


def test_the_tables_are_made_from_nothing(host: Host, tmp_path: Path) -> None:
    empty = host.copy(tmp_path / "mysite", data=False)
    empty.manage("migrate")
    names = {name for (name,) in empty.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert {"agent_thread", "agent_run_step", "agent_token_usage", "governance_usage_rollup"} <= names


def test_a_signed_in_user_is_answered_with_the_hosts_own_rows(host: Host, visitor: Visitor) -> None:
    stream = visitor.ask(f"where is order {ORDER}?")
    assert (stream[0].name, stream[-1].name) == ("meta", "done")
    assert said(stream) == f"Order {ORDER} is on its way."
    assert frames(stream, "tool-output")[0]["output"] == {"number": ORDER, "status": "on its way"}
    numbers = [int(event.id) for event in stream if event.id]
    assert numbers == list(range(1, len(numbers) + 1))

    thread_id = str(stream[0].data["threadId"])
    assert [thread["id"] for thread in visitor.read("/agent/threads")] == [thread_id]
    thread = visitor.read(f"/agent/threads/{thread_id}")
    assert [message["role"] for message in thread["messages"]] == ["user", "assistant", "assistant"]
    assert thread["messages"][-1]["content"] == f"Order {ORDER} is on its way."

    (key,) = host.rows("SELECT key FROM shop_person WHERE email LIKE 'ana@%'")[0]
    owner = str(UUID(str(key)))
    assert host.rows("SELECT id, actor_ref FROM agent_thread") == [(thread_id, owner)]
    ledger = host.rows("SELECT step_key, actor_ref, agent_name, model_id, output_tokens > 0 FROM agent_token_usage")
    assert ledger == [(step, owner, "desk", "scripted", 1) for step in ("llm:0", "llm:1")]
    assert host.rows("SELECT tool_name, status FROM agent_tool_call") == [("order_status", "auto_executed")]
    assert host.rows("SELECT status FROM agent_run") == [("completed",)]


def test_another_users_order_is_as_unknown_as_none(visitor: Visitor) -> None:
    answers = [said(visitor.ask(f"where is order {number}?")) for number in (7, 8)]
    assert answers == [f"There is no order {number} on this account." for number in (7, 8)]


def test_the_page_is_there_with_its_files(visitor: Visitor) -> None:
    page = visitor.request("GET", "/support/")
    assert page.status == 200
    assert b'data-api="/agent/"' in page.body
    assert b'data-agent="desk"' in page.body
    for name in ("chat.css", "page.js", "api.js"):
        assert visitor.request("GET", f"/static/agent/chat/{name}").status == 200


def test_a_stranger_is_sent_to_the_hosts_login(visitor: Visitor) -> None:
    stranger = Visitor(visitor.port)
    assert stranger.request("GET", "/support/").headers["Location"] == "/accounts/login/?next=/support/"
    assert stranger.request("GET", "/agent/threads").status == 401
    assert stranger.request("POST", "/agent/chat", {"message": "hello"}).status == 401


def test_it_answers_under_the_server_for_production_too(host: Host) -> None:
    with served(host.server("daphne"), host.environment, host.directory) as again:
        again.sign_in()
        assert said(again.ask(f"where is order {ORDER}?")) == f"Order {ORDER} is on its way."
