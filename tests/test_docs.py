"""The reference says what the code has, all of it and nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest
from django.apps import apps
from django.contrib import admin
from django.dispatch import Signal
from django.urls import URLPattern
from rest_framework.serializers import BaseSerializer

from agent import signals
from agent.api import bodies
from agent.api.urls import urlpatterns
from agent.conf import PATHS, VALUES, AgentSettings
from agent.flows import spans
from agent.sink_options import SinkOptions
from docs import make_tables

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])
CODE = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
METHODS = ("get", "post", "put", "patch", "delete")
MAKE_FRAMES = (
    "agent/domain/frames.py",
    "agent/flows",
    "agent/registry/context.py",
    "agent/providers/scripted.py",
    "agent/providers/_library/replies.py",
)
IN_FORCE = "In force"
MADE_AT_START = {"EXPOSE_ERRORS", "REPORT_TIME_ZONE", "CONFIRM_TOKEN_SECRET"}  # defaults that other settings make


def page(name: str, *, part: str | None = None) -> str:
    """A page of the reference, or its one part under that heading."""
    text = (DOCS / "reference" / f"{name}.md").read_text()
    if part is None:
        return text
    _, found, rest = text.partition(f"\n## {part}\n")
    assert found, f"{name}.md has no part {part!r}"
    return rest.partition("\n## ")[0]


def rows(text: str) -> Iterator[list[str]]:
    """The cells of every row of every table, without the heads."""
    for line in text.splitlines():
        if line.startswith("| `"):
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def first_words(text: str) -> set[str]:
    """What the first cell of each row names."""
    return {word for row in rows(text) for word in CODE.findall(row[0])}


@cache
def trees(*places: str) -> tuple[ast.Module, ...]:
    tops = [ROOT / folder for folder in places]
    paths = [path for top in tops for path in ([top] if top.is_file() else sorted(top.rglob("*.py")))]
    return tuple(ast.parse(path.read_text()) for path in paths if "testing" not in path.parts)


def nodes(*folders: str) -> Iterator[ast.AST]:
    return (node for tree in trees(*folders) for node in ast.walk(tree))


def text_of(node: ast.AST | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


# ---- settings --------------------------------------------------------------------------------------------------------


def test_settings_are_all_there_and_once() -> None:
    told = [key.strip("`") for key, *_ in rows(page("settings", part=IN_FORCE))]
    assert sorted(told) == sorted({*VALUES, *PATHS})


def test_options_of_sinks_are_all_there_with_their_defaults() -> None:
    told = {row[0].strip("`"): row[1].strip("`") for row in rows(page("settings", part="Options of the sinks"))}
    assert told == {each.name: repr(each.default) for each in fields(SinkOptions)}


def test_settings_have_the_defaults_that_are_told() -> None:
    fallback = {
        each.name.upper(): each.default_factory() if callable(each.default_factory) else each.default
        for each in fields(AgentSettings)
        if each.name.upper() in VALUES
    }
    fallback |= {key: default for key, (default, _) in PATHS.items()}
    for key, default, *_ in rows(page("settings", part=IN_FORCE)):
        name = key.strip("`")
        if name not in MADE_AT_START:
            assert default == f"`{_shown(fallback[name])}`", name


def _shown(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def test_every_setting_has_an_effect() -> None:
    read = {
        node.attr.upper()
        for node in nodes("agent", "governance")
        if isinstance(node, ast.Attribute) and _is_settings(node.value)
    }
    assert {*VALUES, *PATHS} <= read


def _is_settings(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id == "agent_settings"
    return isinstance(node, ast.Name) and node.id == "settings"


# ---- checks, errors, frames ------------------------------------------------------------------------------------------


def test_checks_are_all_there() -> None:
    ids = {
        found
        for folder in ("agent", "governance")
        for path in (ROOT / folder).rglob("*.py")
        for found in re.findall(r"\b(?:agent|governance)\.[EW]\d{3}\b", path.read_text())
    }
    assert first_words(page("checks")) == ids


def test_error_codes_are_all_there() -> None:
    text = page("errors")
    told = first_words(text)
    for sentence in (line for line in text.splitlines() if line.startswith(("Reserved", "`model_error`"))):
        told |= set(CODE.findall(sentence)) & {*codes_in_code()}
    assert told == codes_in_code()


def codes_in_code() -> set[str]:
    """`code = "..."` of a class, `code="..."` of a call, and the maps and sets of the edge."""
    found: set[str] = set()
    for node in nodes("agent"):
        match node:
            case ast.Assign(targets=[ast.Name(id="code")], value=ast.Constant(value=str(code))):
                found.add(code)
            case ast.keyword(arg="code" | "error_code", value=ast.Constant(value=str(code))):
                found.add(code)
            case ast.Call(func=ast.Name(id="failed"), args=[ast.Constant(value=str(code)), *_]):
                found.add(code)
            case ast.Assign(targets=[ast.Name(id="codes")], value=ast.Dict(values=values)):
                found |= {each for value in values if (each := text_of(value))}
            case ast.AnnAssign(target=ast.Name(id="STATUS_OF_CODE"), value=ast.Dict(keys=keys)):
                found |= {each for key in keys if (each := text_of(key))}
    return found


def test_every_code_of_the_openapi_document_is_told() -> None:
    documented = {
        code
        for node in nodes("agent/api/views")
        if isinstance(node, ast.keyword) and node.arg == "errors" and isinstance(node.value, ast.Dict)
        for value in node.value.values
        if isinstance(value, ast.Tuple)
        for item in value.elts
        if (code := text_of(item))
    }
    assert documented
    assert documented <= first_words(page("errors", part="Answers of the HTTP interface"))


def test_frames_are_all_there() -> None:
    before_the_wire = page("frames").partition("\n## ")[0]
    assert first_words(before_the_wire) == set(kinds_in_code())


def kinds_in_code() -> Iterator[str]:
    """`{"kind": "..."}` wherever frames are made, and what the flows compare a `kind` with."""
    for node in nodes(*MAKE_FRAMES):
        match node:
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                yield from (kind for key, value in pairs if text_of(key) == "kind" and (kind := text_of(value)))
            case ast.Call(func=ast.Attribute(attr="_say"), args=[ast.Constant(value=str(kind)), *_]):
                yield kind
    for node in nodes("agent/domain/frames.py", "agent/flows"):
        match node:
            case ast.Compare(left=left, comparators=[ast.Constant(value=str(kind))]) if _is_kind(left):
                yield kind


def _is_kind(node: ast.AST) -> bool:
    return (isinstance(node, ast.Name) and node.id == "kind") or (
        isinstance(node, ast.Subscript) and text_of(node.slice) == "kind"
    )


# ---- routes, tables, permissions -------------------------------------------------------------------------------------


def test_routes_are_all_there() -> None:
    text = page("http")
    told = {word for word in first_words(text) if word.partition(" ")[0].lower() in METHODS}
    assert told == set(routes_in_code())


def routes_in_code() -> Iterator[str]:
    for route in urlpatterns:
        assert isinstance(route, URLPattern)
        if route.name is None:  # the same path with a slash
            continue
        view = route.callback.view_class  # type: ignore[attr-defined]
        path = str(route.pattern).replace("str:", "")
        yield from (f"{method.upper()} {path}" for method in METHODS if hasattr(view, method))


@pytest.mark.parametrize("body", [bodies.SendBody, bodies.ThreadPatchBody, bodies.FeedbackBody])
def test_fields_of_bodies_are_told(body: type[BaseSerializer[object]]) -> None:
    told = set(re.findall(r"\w+", " ".join(CODE.findall(page("http")))))
    assert set(body().fields) <= told  # type: ignore[attr-defined]


def test_tables_are_as_the_models_have_them() -> None:
    """To write them anew: `.venv/bin/python -m docs.make_tables`."""
    assert (DOCS / "reference" / "tables.md").read_text() == make_tables.page()


def test_every_table_is_said_to_be_written_or_not() -> None:
    told = first_words(page("tables", part="What writes them today"))
    ours = {model._meta.db_table for model in make_tables.tables() if model._meta.app_label == "agent"}
    assert {name for name in told if name.startswith("agent_")} == ours


def test_permissions_are_all_there() -> None:
    viewed = {
        f"{model._meta.app_label}.view_{model._meta.model_name}": model._meta.db_table
        for model in admin.site._registry
        if model._meta.app_label in {"agent", "governance"} and model._meta.managed
    }
    told = {row[0].strip("`"): row[1].strip("`") for row in rows(page("permissions", part="Of the admin"))}
    assert told == viewed
    own = {
        f"{app}.{codename}"
        for app in ("agent", "governance")
        for model in apps.get_app_config(app).get_models()
        for codename, _ in model._meta.permissions
    }
    assert first_words(page("permissions", part="With a meaning of their own")) == own


def test_commands_are_all_there() -> None:
    ours = {path.stem for app in ("agent", "governance") for path in (ROOT / app).glob("management/commands/[a-z]*.py")}
    assert {name.partition(" ")[0] for name in first_words(page("commands"))} == ours


# ---- signals, spans, logs --------------------------------------------------------------------------------------------


def test_signals_are_all_there() -> None:
    told = {row[0].strip("`"): row[1].strip("`") for row in rows(page("signals", part="Signals"))}
    assert told == {name: _name_of(signal) for name, signal in signals.SIGNALS.items()}


def _name_of(signal: Signal) -> str:
    return next(name for name, value in vars(signals).items() if value is signal)


def test_what_events_carry_is_told() -> None:
    told = set(CODE.findall(page("signals", part="Signals")))
    keys = {
        key
        for node in nodes("agent/flows/events.py")
        for key in (
            [each.arg for each in node.keywords]
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_tell"
            else [text_of(each) for each in node.keys]
            if isinstance(node, ast.Dict)
            else []
        )
        if key is not None
    }
    assert {"runId", "durationMs", "toolName", "period"} <= keys
    assert keys <= told


def test_spans_and_their_attributes_are_all_there() -> None:
    told = first_words(page("signals", part="Spans"))
    texts = {text for node in nodes("agent/flows/spans.py") if (text := text_of(node))}
    used = {text for text in texts if re.fullmatch(r"(gen_ai|agent|error)(\.\w+)+", text)}
    assert told == used | {spans.LLM, spans.TOOL, spans.STRUCTURED, spans.FOLLOW_UPS}


def test_loggers_are_all_there() -> None:
    named = {
        node.args[0].value if isinstance(node.args[0], ast.Constant) else "agent.providers"
        for node in nodes("agent")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "getLogger"
    }
    text = (DOCS / "how-to" / "observe.md").read_text().partition("\n## Logs\n")[2].partition("\n## ")[0]
    assert first_words(text) == named


# ---- all pages -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    dead = [target for target in LINK.findall(path.read_text()) if not (path.parent / target).exists()]
    assert not dead


def test_every_page_is_in_the_index() -> None:
    index = (DOCS / "README.md").read_text()
    listed = {(DOCS / target).resolve() for target in LINK.findall(index)}
    pages = {path for path in DOCS.rglob("*.md") if path.parent.name != "decisions" and path != DOCS / "README.md"}
    assert pages <= listed
    assert DOCS / "decisions" / "README.md" in listed


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_python_in_pages_is_python(path: Path) -> None:
    for block in re.findall(r"^```python\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL):
        compile(block, str(path), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
