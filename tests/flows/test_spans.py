"""Spans: what was really done, named as the conventions name it, in the trace of the run, without a word of anybody."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from uuid import UUID

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import error_attributes, gen_ai_attributes

from agent.domain.model_calls import ModelRequest, Usage
from agent.errors import ModelError
from agent.flows.driver import Driver
from agent.flows.spans import trace_id
from agent.providers.scripted import ScriptedReply, call
from agent.registry import agent, tool
from tests.flows.conftest import Site
from tests.flows.test_replay import play

MakeSite = Callable[..., Site]
SECRET = "tell-nobody-42"

exporter = InMemorySpanExporter()


@pytest.fixture(scope="module", autouse=True)
def recording() -> Iterator[None]:
    """A process has one provider; after this module it keeps nothing any more."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    yield
    exporter.shutdown()  # the provider goes on: shut down, it would complain of every later span


@pytest.fixture(autouse=True)
def nothing_yet() -> None:
    exporter.clear()


def spans(name: str | None = None) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if name in {None, span.name}]


def call_id(span: ReadableSpan) -> str:
    return str((span.attributes or {})["gen_ai.tool.call.id"])


@pytest.fixture
def look(site: MakeSite) -> None:
    @tool
    def look_up(number: int) -> str:
        """Look a number up."""
        if number == 13:
            raise ValueError(SECRET)
        with trace.get_tracer("host").start_as_current_span("host.query"):
            return SECRET

    @tool
    async def look_later(number: int) -> int:
        """Look a number up in time."""
        with trace.get_tracer("host").start_as_current_span("host.request"):
            await asyncio.sleep(0)
        return number

    agent(name="shop", prompt=SECRET, tools=[look_up, look_later])(type("Shop", (), {}))


def script(request: ModelRequest) -> ScriptedReply:
    if request.messages[-1].tool_results:
        return ScriptedReply(f"Done. {SECRET}", reasoning=SECRET)
    calls = [
        call("look_up", "a", number=1),
        call("look_up", "b", number=13),
        call("look_later", "c", number=2),
        call("guess", "d", what=SECRET),
    ]
    usage = Usage(input_tokens=100, output_tokens=7, cache_read_tokens=60, cache_write_tokens=5)
    return ScriptedReply(f"{SECRET} Looking.", calls=calls, usage=usage, model_id="anthropic:claude-9")


@pytest.mark.usefixtures("look")
def test_model_calls_and_tools_are_spans_of_the_runs_trace(site: MakeSite) -> None:
    run = site(script).turn("Where is it?", agent="shop")
    first, second = spans("llm.turn")
    good, bad, later = sorted(
        spans("tool.execution"), key=lambda span: str((span.attributes or {})["gen_ai.tool.call.id"])
    )
    assert {span.context.trace_id for span in spans()} == {UUID(run.id).int} == {trace_id(run.id)}
    assert dict(first.attributes or {}) == {
        "gen_ai.agent.name": "shop",
        "gen_ai.conversation.id": run.thread_id,
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "scripted",
        "gen_ai.request.stream": True,
        "gen_ai.response.model": "claude-9",
        "gen_ai.response.finish_reasons": ("tool_call",),
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 60,
        "gen_ai.usage.cache_creation.input_tokens": 5,
        "agent.run.id": run.id,
        "agent.step": "llm:0",
        "agent.purpose": "chat",
        "agent.tokens_source": "reported",
        "agent.tries": 1,
    }
    assert (first.kind, good.kind) == (trace.SpanKind.CLIENT, trace.SpanKind.INTERNAL)
    assert (second.attributes or {})["agent.step"] == "llm:1"
    assert (
        dict(good.attributes or {}).items()
        >= {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "look_up",
            "gen_ai.tool.type": "function",
        }.items()
    )
    assert (good.status.status_code, bad.status.status_code) == (trace.StatusCode.UNSET, trace.StatusCode.ERROR)
    assert (bad.attributes or {})["error.type"] == "tool_failed"
    host = {span.name: span.parent for span in spans() if span.name.startswith("host.")}
    assert host == {"host.query": good.context, "host.request": later.context}


@pytest.mark.usefixtures("look")
def test_names_are_those_of_the_conventions(site: MakeSite) -> None:
    site(script).turn(agent="shop")
    theirs = {str(value) for module in (gen_ai_attributes, error_attributes) for value in vars(module).values()}
    used = {name for span in spans() for name in span.attributes or {} if not name.startswith("agent.")}
    assert "gen_ai.operation.name" in used
    assert used <= theirs


@pytest.mark.usefixtures("look")
def test_no_span_holds_a_word_of_anybody(site: MakeSite) -> None:
    site(script).turn(f"Where is it? {SECRET}")
    site([ModelError(f"no: {SECRET}", status=400)]).turn()
    assert len(spans("llm.turn")) == 3
    assert SECRET not in " ".join(span.to_json() for span in spans())


def test_a_failed_call_says_what_kind_of_failure_and_not_more(site: MakeSite) -> None:
    site([ModelError(SECRET, status=401)]).turn()
    site([RuntimeError(SECRET)]).turn()
    kinds = [(span.attributes or {})["error.type"] for span in spans("llm.turn")]
    assert kinds == ["401", "RuntimeError"]
    assert all(span.status.status_code is trace.StatusCode.ERROR for span in spans())
    assert all(span.status.description is None and not span.events for span in spans())


def test_tries_of_one_call_are_one_span(site: MakeSite) -> None:
    site([ModelError("busy", transient=True, status=429), "Hi."]).turn()
    [span] = spans()
    assert (span.attributes or {})["agent.tries"] == 2
    assert span.status.status_code is trace.StatusCode.UNSET


def test_a_stopped_answer_is_no_error(site: MakeSite) -> None:
    desk = site([ScriptedReply("one two three four", delay_ms=100)])
    admitted = desk.send()

    def stop_soon(driver: Driver) -> None:
        asyncio.get_running_loop().call_later(0.12, driver.cancel)

    desk.drive(admitted.run_id, meanwhile=stop_soon)
    [span] = spans()
    assert (span.attributes or {})["agent.outcome"] == "cancelled"
    assert span.status.status_code is trace.StatusCode.UNSET


def test_the_request_that_began_a_run_is_linked(site: MakeSite) -> None:
    desk = site(["Hi."])
    with trace.get_tracer("host").start_as_current_span("POST /agent/chat") as request:
        run = desk.turn()
    [span] = spans("llm.turn")
    assert span.context.trace_id == UUID(run.id).int
    assert [link.context for link in span.links] == [request.get_span_context()]


@pytest.mark.parametrize(("dies_at", "calls"), [(2, 3), (3, 2), (4, 3)])
def test_a_replay_opens_no_span_for_what_is_recorded(site: MakeSite, dies_at: int, calls: int) -> None:
    """Cut before the commit of an answer, of the tools, of the last answer: only what is done again is there twice."""

    @tool
    def look(number: int) -> int:
        """Look a number up."""
        return number

    agent(name="shop", prompt="p", tools=[look])(type("Shop", (), {}))
    play(site, dies_at)
    assert len(spans("llm.turn")) == calls
    assert len(spans("tool.execution")) == (4 if dies_at == 3 else 2)
    assert len({span.context.trace_id for span in spans()}) == 1


def test_ids_of_another_kind_have_a_trace_too() -> None:
    assert trace_id("run-1") == trace_id("run-1") != trace_id("run-2")
    assert 0 < trace_id("run-1") < 1 << 128


WITHOUT = """
import sys
sys.modules["opentelemetry"] = None
import os
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
import django
django.setup()
from agent import agent
from agent.testing import run_turn_in_memory
agent(name="shop", prompt="p", tools=[])(type("Shop", (), {}))
print(run_turn_in_memory(["Hi."]).run.status)
"""


@pytest.mark.once
def test_without_the_library_a_turn_is_as_ever() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "completed\n", done.stderr
