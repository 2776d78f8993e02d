"""The OpenAPI document is complete: every route, every answer, every error code; and it is served under its prefix."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from drf_spectacular.settings import patched_settings

from agent.api.urls import urlpatterns
from agent.api.views.schema import document
from tests.edges.conftest import MakeDesk, Person

pytestmark = pytest.mark.once

METHODS = {"get", "post", "put", "patch", "delete"}
# Spec 09 §1, as far as the routes of this release can answer them.
CODES = {
    *("not_authenticated", "forbidden", "not_found", "invalid_body", "agent_not_found", "persona_not_found"),
    *("model_not_offered", "bad_capabilities", "regenerate_needs_thread", "nothing_to_regenerate", "empty_message"),
    *("run_active", "quota_exceeded", "idempotency_key_reused", "stream_not_found", "too_large", "unsupported_type"),
    "not_supported",
}


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    return document("agent/")


def operations(described: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            if method in METHODS:
                yield f"{method} {path}", operation


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_the_hosts_own_document_has_no_warnings(tmp_path: Path, version: str) -> None:
    err = StringIO()
    with patched_settings({"OAS_VERSION": version}):
        call_command(
            "spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "schema.yml"), stderr=err, stdout=err
        )
    assert f"openapi: {version}" in (tmp_path / "schema.yml").read_text()
    assert "arning" not in err.getvalue()


def test_every_route_is_there_once_without_its_slash(described: dict[str, Any]) -> None:
    named = {f"/agent/{pattern.pattern}" for pattern in urlpatterns if pattern.name}
    assert {path.replace("{", "<str:").replace("}", ">") for path in described["paths"]} == named


def test_every_handler_is_described(described: dict[str, Any]) -> None:
    for pattern in urlpatterns:
        if pattern.name:
            view = pattern.callback.view_class  # type: ignore[attr-defined]
            path = f"/agent/{pattern.pattern}".replace("<str:", "{").replace(">", "}")
            handlers = {name for name in METHODS if hasattr(view, name)}
            assert handlers == set(described["paths"][path]), path


def test_every_operation_tells_its_errors_in_one_shape(described: dict[str, Any]) -> None:
    for name, operation in operations(described):
        assert operation["summary"], name
        assert operation["description"], name
        answers = operation["responses"]
        assert {"401", "403", "429", "500"} <= set(answers), name
        assert any(status.startswith("2") for status in answers), name
        for status, answer in answers.items():
            assert answer["description"] or status.startswith("2"), (name, status)
            if not status.startswith("2"):
                content = answer["content"]
                assert content == {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorShape"}}}, name


def test_operation_ids_are_unique(described: dict[str, Any]) -> None:
    ids = [operation["operationId"] for _, operation in operations(described)]
    assert len(ids) == len(set(ids))


def test_every_error_code_is_named_somewhere(described: dict[str, Any]) -> None:
    said = " ".join(
        answer["description"] for _, operation in operations(described) for answer in operation["responses"].values()
    )
    assert {code for code in CODES if f"`{code}`" not in said} == set()


def test_the_stream_is_described_as_a_stream(described: dict[str, Any]) -> None:
    send = described["paths"]["/agent/chat"]["post"]
    assert set(send["responses"]["200"]["content"]) == {"text/event-stream", "application/json"}
    assert set(send["responses"]["200"]["headers"]) == {"X-Agent-Run-Id", "X-Agent-Thread-Id"}
    assert {parameter["name"] for parameter in send["parameters"]} == {"Idempotency-Key"}
    stream = described["paths"]["/agent/chat/{run_id}/stream"]["get"]
    assert {parameter["name"] for parameter in stream["parameters"]} == {"run_id", "after", "Last-Event-ID"}


@pytest.mark.django_db
def test_the_served_document_is_openapi_3_1_under_the_mounted_prefix(make_desk: MakeDesk, owner: Person) -> None:
    make_desk(SERVE_SCHEMA=True)
    for path in ("/agent/schema", "/agent/schema/"):
        served = owner.get(path).json()
        assert served["openapi"].startswith("3.1")
        assert all(path.startswith("/agent/") for path in served["paths"])
