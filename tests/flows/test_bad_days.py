"""What hosts and vendors do on their worst days: one run fails by itself, the process goes on for everybody else."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.db import connections
from django.test import override_settings
from pydantic import BaseModel

from agent.conf import setting_problems
from agent.db import close_threads, close_unusable, in_db
from agent.domain.model_calls import FrameEmitter, ModelRequest, Reply, Usage
from agent.flows import dispatch, threads
from agent.flows.driver import Driver
from agent.providers.scripted import ScriptedReply, call
from agent.registry import agent, tool
from agent.sinks.base import FrameSink
from agent.store.base import AgentStore
from tests.flows.conftest import ALICE, Site

MakeSite = Callable[..., Site]


class Deleted:
    """A model in whose middle the user deletes the conversation."""

    def __init__(self) -> None:
        self.driver: Driver | None = None
        self.thread_id = ""

    async def stream(self, request: ModelRequest, emit: FrameEmitter) -> Reply:
        emit({"kind": "text", "text": "One "})
        await in_db(threads.delete, ALICE, self.thread_id)
        assert self.driver is not None
        asyncio.get_running_loop().call_soon(self.driver.cancel)
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


def test_a_conversation_that_is_deleted_in_mid_answer_settles_its_run(site: MakeSite) -> None:
    model = Deleted()
    desk = site([], PROVIDERS={"deleted": model})
    admitted = desk.send()
    model.thread_id = admitted.thread_id
    run = desk.drive(admitted.run_id, meanwhile=lambda driver: setattr(model, "driver", driver))
    assert run.status == "cancelled"
    assert desk.frames(run.id)[-1] == {"end": None}
    assert len(desk.store.usage_of_run(run.id)) == 1


@pytest.mark.parametrize(
    "usage",
    [
        Usage(input_tokens=-5, output_tokens=3),
        Usage(input_tokens=10**30, output_tokens=1),
        Usage(input_tokens=1, output_tokens=1, reported_cost_usd=Decimal("NaN")),
        Usage(input_tokens=1, output_tokens=1, reported_cost_usd=Decimal("1e30")),
        Usage(input_tokens=1, output_tokens=1, reported_cost_usd=Decimal(-1)),
    ],
)
def test_usage_that_no_ledger_can_hold_does_not_hold_the_run(site: MakeSite, usage: Usage) -> None:
    desk = site([ScriptedReply("Fine.", usage=usage)])
    run = desk.turn()
    assert run.status == "completed"
    (row,) = desk.store.usage_of_run(run.id)
    assert row.input_tokens >= 0
    assert row.reported_cost_nanos is None
    assert desk.provider.requests.__len__() == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, BaseException])
@pytest.mark.parametrize("is_async", [True, False])
def test_a_tool_that_raises_anything_at_all_has_failed(
    site: MakeSite, error: type[BaseException], is_async: bool
) -> None:
    desk = site([ScriptedReply(calls=[call("wild")]), "It failed."])
    if is_async:

        @tool(name="wild")
        async def wild_later() -> str:
            """Raise."""
            raise error("now")

    else:

        @tool(name="wild")
        def wild_now() -> str:
            """Raise."""
            raise error("now")

    agent(name="shop", prompt="p", tools=["wild"])(type("Shop", (), {}))
    run = desk.turn()
    assert run.status == "completed"
    assert "error" in (desk.messages(run.thread_id)[1].tool_results or [{}])[0]


@pytest.mark.parametrize("error", [KeyboardInterrupt("now"), SystemExit(3), asyncio.CancelledError()])
def test_a_provider_that_raises_anything_at_all_fails_its_run(site: MakeSite, error: BaseException) -> None:
    desk = site([error], MODEL_RETRIES=0)
    run = desk.turn()
    assert (run.status, run.error_code) == ("failed", "run_failed")
    assert desk.store.active_run_for_thread(run.thread_id) is None


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_a_prompt_that_raises_anything_at_all_fails_its_run(site: MakeSite, error: type[BaseException]) -> None:
    def prompt(_: Any) -> str:
        raise error("now")

    desk = site(["Never."])
    agent(name="shop", prompt=prompt, tools=[])(type("Shop", (), {}))
    assert desk.turn().error_code == "run_failed"


class Unmakeable:
    def __init__(self) -> None:
        raise RuntimeError("no key")


def unmakeable_sink(store: AgentStore) -> FrameSink:
    raise RuntimeError("no broker")


def test_a_provider_that_cannot_be_made_fails_the_run_and_frees_the_thread(site: MakeSite) -> None:
    desk = site([], PROVIDERS={"broken": Unmakeable})
    run = desk.turn()
    assert (run.status, run.error_code) == ("failed", "run_failed")
    assert desk.frames(run.id)[-1]["end"]["code"] == "run_failed"
    assert desk.store.active_run_for_thread(run.thread_id) is None


def test_a_sink_that_cannot_be_made_fails_the_run_and_frees_the_thread(site: MakeSite) -> None:
    desk = site(["Never."], SINK=f"{__name__}.unmakeable_sink")
    run = desk.turn()
    assert run.status == "failed"
    assert desk.store.active_run_for_thread(run.thread_id) is None


def test_frames_that_no_client_knows_are_passed_over(site: MakeSite) -> None:
    class Chatty:
        async def stream(self, request: ModelRequest, emit: FrameEmitter) -> Reply:
            emit({"kind": "weather", "degrees": 7})
            emit({"kind": "text", "text": None})
            emit({"kind": "text", "text": "Fine."})
            return Reply(text="Fine.")

    desk = site([], PROVIDERS={"chatty": Chatty()})
    run = desk.turn()
    assert run.status == "completed"
    assert [frame.get("kind", "end") for frame in desk.frames(run.id)][:3] == ["step-start", "text", "step-finish"]


def test_a_site_without_time_zones_is_refused() -> None:
    with override_settings(USE_TZ=False):
        assert any("USE_TZ" in problem for problem in setting_problems())
    assert not [problem for problem in setting_problems() if "USE_TZ" in problem]


def test_a_forked_process_makes_a_runner_of_its_own(site: MakeSite) -> None:
    desk = site([])
    assert dispatch.runner() is desk.runner
    child = os.fork()
    if child == 0:
        os._exit(0 if dispatch._runner is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.only_on("postgresql")
@pytest.mark.django_db(transaction=True)
def test_a_connection_that_was_cut_while_nobody_looked_is_made_anew() -> None:
    def ask() -> int:
        close_unusable(unwatched_seconds=0)
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            backend: int = cursor.fetchone()[0]
            return backend

    first = asyncio.run(in_db(ask))
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [first])
    assert asyncio.run(in_db(ask)) != first
    close_threads()


def test_a_conversation_that_is_deleted_before_anybody_works_is_a_stop(site: MakeSite) -> None:
    desk = site(["Never."])
    admitted = desk.send()
    desk.store.soft_delete_thread(admitted.thread_id)
    run = desk.drive(admitted.run_id)
    assert (run.status, run.error_code) == ("cancelled", None)
    assert [frame.get("kind", "end") for frame in desk.frames(run.id)] == ["cancelled", "end"]


def test_a_conversation_that_is_deleted_while_the_model_answers_is_a_stop(site: MakeSite) -> None:
    desk = site([])
    admitted = desk.send()

    async def script(_: ModelRequest) -> str:
        await in_db(desk.store.soft_delete_thread, admitted.thread_id)
        return "Too late."

    desk = site(script)
    run = desk.drive(admitted.run_id)
    assert run.status == "cancelled"
    assert len(desk.store.usage_of_run(run.id)) == 1


class Line(BaseModel):
    rate: float = 1


def nested(levels: int) -> dict[str, Any]:
    """Arguments of so many levels."""
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "given",
    [
        {"rate": float("nan")},
        {"rate": float("-inf")},
        {"rate": "Infinity"},
        {"rate": 10**400},
        {"lines": [{"rate": "nan"}]},
        {"more": nested(99)},
        {"more": nested(600)},
        {"more": {1: "a"}},
        {"__raw": '{"rate": 1e999}'},
    ],
    ids=["nan", "inf", "inf-text", "huge", "inner-nan", "deep", "deeper", "keys", "raw"],
)
def test_arguments_that_json_cannot_say_are_a_failure_of_their_call_alone(
    site: MakeSite, given: dict[str, Any]
) -> None:
    @tool
    def price(rate: float = 1, lines: list[Line] = [], more: dict[str, Any] = {}) -> str:  # noqa: B006
        """Price."""
        return "priced"

    agent(name="desk", prompt="p", tools=["price"])(type("Desk", (), {}))
    desk = site([ScriptedReply(calls=[call("price", "c", **given)]), ScriptedReply("It cannot be priced.")])
    run = desk.turn()
    assert (run.status, run.error_message) == ("completed", None)
    asked, said = desk.messages(run.thread_id)[1:]
    (result,) = asked.tool_results or []
    assert result["error"].startswith("The arguments ")
    assert said.content == "It cannot be priced."
    json.dumps(desk.frames(run.id), allow_nan=False)  # what was told can be read by every client
