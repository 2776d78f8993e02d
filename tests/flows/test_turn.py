"""A turn, from the message to the settled run: what is stored, recorded, counted and streamed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from agent.db import in_db
from agent.domain.actor import Actor
from agent.domain.commands import NewPrice
from agent.domain.model_calls import FrameEmitter, ModelRequest, Reply, ReplyCall, Usage
from agent.errors import Invalid, ModelError, NotAllowed, NotFound, RunActive
from agent.flows.cancel import cancel
from agent.flows.driver import Driver
from agent.providers.scripted import ScriptedReply, call
from agent.registry import PromptContext, ToolContext, agent, persona, tool
from tests.flows.conftest import ALICE, Site

MakeSite = Callable[..., Site]
BOB = Actor("bob")


@pytest.fixture
def shop() -> Callable[[Site], None]:
    """Declare an agent with a read tool in the site's own registry."""

    def declare(_: Site) -> None:
        @tool
        def look_up_order(ctx: ToolContext, number: int) -> dict[str, Any]:
            """Where an order is."""
            if number == 13:
                raise RuntimeError("secret marker in a traceback")
            return {"number": number, "status": "shipped", "asked_by": ctx.actor.ref}

        @agent(name="shop", prompt="You help the shop.", tools=[look_up_order])
        class Shop:
            pass

    return declare


def test_a_plain_answer_is_stored_recorded_and_counted(site: MakeSite) -> None:
    desk = site(["Hello there."])
    run = desk.turn("Hi, where is my lamp?")
    assert (run.status, run.error_code, run.attempt) == ("completed", None, 1)
    assert [(m.role, m.content, m.run_id) for m in desk.messages(run.thread_id)] == [
        ("user", "Hi, where is my lamp?", run.id),
        ("assistant", "Hello there.", run.id),
    ]
    (row,) = desk.store.usage_of_run(run.id)
    assert (row.purpose, row.step_key, row.tokens_source) == ("chat", "llm:0", "reported")
    assert row.message_id == desk.messages(run.thread_id)[-1].id
    detail = desk.store.get_thread(run.thread_id)
    assert detail is not None
    assert (detail.summary.title, detail.summary.active_run_id) == ("Hi, where is my lamp?", None)


def test_the_journal_of_a_plain_answer_has_the_names_of_the_spec_in_order(site: MakeSite) -> None:
    desk = site(["Hello there."])
    run = desk.turn()
    assert [step.name for step in desk.steps(run.id)] == [
        "persist:user",
        "patch:agent:selected-history",
        "load:thread",
        "run:prompt-stages",
        "persist:run:start",
        "llm:0",
        "persist:title",
        "persist:run:end",
    ]


def test_a_read_tool_is_called_on_the_way(site: MakeSite, shop: Callable[[Site], None]) -> None:
    desk = site([ScriptedReply(calls=[call("look_up_order", number=1042)]), "It was shipped."])
    shop(desk)
    run = desk.turn("where is order 1042?")
    asked, answered = desk.messages(run.thread_id)[1:]
    assert asked.tool_calls is not None
    (called,) = asked.tool_calls
    assert called["input"] == {"number": 1042}
    assert asked.tool_results == [
        {
            "id": called["id"],
            "name": "look_up_order",
            "output": {"number": 1042, "status": "shipped", "asked_by": "alice"},
        }
    ]
    assert answered.content == "It was shipped."
    row = desk.store.get_tool_call(called["id"])
    assert row is not None
    assert (row.status, row.run_id, row.provider_call_id, row.executed_by_ref) == (
        "auto_executed",
        run.id,
        called["providerCallId"],
        "alice",
    )
    assert [step.name for step in desk.steps(run.id)][5:] == [
        "llm:0",
        f"persist:toolcall:{called['id']}",
        f"tool:{called['id']}",
        "persist:tool-outputs:0",
        "llm:1",
        "persist:title",
        "persist:run:end",
    ]
    assert [entry.step_key for entry in desk.store.usage_of_run(run.id)] == ["llm:0", "llm:1"]


def test_the_stream_tells_the_turn_in_order(site: MakeSite, shop: Callable[[Site], None]) -> None:
    desk = site([ScriptedReply("One moment.", calls=[call("look_up_order", number=1)]), "Shipped today."])
    shop(desk)
    frames = desk.frames(desk.turn().id)
    kinds = [frame.get("kind", "end") for frame in frames]
    assert [kind for kind in kinds if kind != "text"] == [
        "step-start",
        "tool-input-start",
        "tool-input-delta",
        "tool-input-available",
        "tool-output",
        "step-finish",
        "step-start",
        "step-finish",
        "title",
        "end",
    ]
    assert "".join(frame["text"] for frame in frames if frame.get("kind") == "text") == "One moment.Shipped today."
    available = next(frame for frame in frames if frame.get("kind") == "tool-input-available")
    assert (available["toolKind"], available["input"]) == ("read", {"number": 1})
    assert frames[-1] == {"end": None}
    finish = next(frame for frame in frames if frame.get("kind") == "step-finish")
    assert finish["costUsd"] is None  # unpriced, never 0


def test_the_result_is_shown_to_the_model_under_its_own_id(site: MakeSite, shop: Callable[[Site], None]) -> None:
    desk = site([ScriptedReply(calls=[call("look_up_order", "call_0", number=7)]), "Done."])
    shop(desk)
    desk.turn()
    second = desk.provider.requests[-1]
    assert second.system == "You help the shop."
    exchange = second.messages[-1]
    assert [one.id for one in exchange.tool_calls] == ["call_0"] == [one.id for one in exchange.tool_results]
    assert exchange.tool_results[0].output["number"] == 7


def test_cost_is_fixed_by_the_price_in_force(site: MakeSite) -> None:
    usage = Usage(input_tokens=1000, output_tokens=100, cache_read_tokens=800)
    desk = site([ScriptedReply("Yes.", usage=usage, model_id="m-1")])
    price = NewPrice(
        model_id="m-1",
        input_per_million_nanos=1_000_000_000,
        output_per_million_nanos=2_000_000_000,
        cache_read_per_million_nanos=100_000_000,
    )
    desk.store.supersede_price(price)
    run = desk.turn()
    (row,) = desk.store.usage_of_run(run.id)
    assert row.cost_nanos == 200 * 1000 + 800 * 100 + 100 * 2000
    finish = next(frame for frame in desk.frames(run.id) if frame.get("kind") == "step-finish")
    assert finish["costUsd"] == pytest.approx(row.cost_nanos / 1e9, abs=1e-12)


def test_a_failing_tool_is_told_to_the_model_and_hides_its_traceback(
    site: MakeSite, shop: Callable[[Site], None]
) -> None:
    desk = site([ScriptedReply(calls=[call("look_up_order", number=13)]), "It could not be looked up."])
    shop(desk)
    run = desk.turn()
    assert run.status == "completed"
    asked = desk.messages(run.thread_id)[1]
    assert asked.tool_results is not None
    (result,) = asked.tool_results
    assert "marker" not in result["error"]
    row = desk.store.get_tool_call(result["id"])
    assert row is not None
    assert row.status == "failed"
    assert "marker" in (row.error or "")
    assert any(frame.get("kind") == "tool-output-error" for frame in desk.frames(run.id))


def test_parallel_reads_keep_their_own_results(site: MakeSite, shop: Callable[[Site], None]) -> None:
    calls = [call("look_up_order", "a", number=1), call("look_up_order", "b", number=13), call("no_such", "c")]
    desk = site([ScriptedReply(calls=calls), "Mixed."])
    shop(desk)
    run = desk.turn()
    results = desk.messages(run.thread_id)[1].tool_results or []
    assert [("error" in result, result["name"]) for result in results] == [
        (False, "look_up_order"),
        (True, "look_up_order"),
        (True, "no_such"),
    ]
    assert "look_up_order" in results[2]["error"]  # only what this actor may use is named


def test_repeated_provider_ids_within_a_run_are_told_apart(site: MakeSite, shop: Callable[[Site], None]) -> None:
    def script(request: ModelRequest) -> ScriptedReply:
        again = sum(bool(message.tool_calls) for message in request.messages) < 2
        return ScriptedReply(calls=[ReplyCall(id="call_0", name="look_up_order", input={"number": 1})] if again else ())

    desk = site(script)
    shop(desk)
    run = desk.turn()
    made = [m.tool_calls[0]["providerCallId"] for m in desk.messages(run.thread_id) if m.tool_calls]
    assert made == ["call_0", "call_0-2"]


def test_max_steps_ends_the_run_without_a_closing_answer(site: MakeSite, shop: Callable[[Site], None]) -> None:
    desk = site(lambda _: ScriptedReply(calls=[call("look_up_order", number=1)]), MAX_STEPS=2)
    shop(desk)
    run = desk.turn()
    assert run.status == "completed"
    assert len(desk.provider.requests) == 2
    assert desk.frames(run.id)[-1] == {"end": None}
    assert desk.store.active_run_for_thread(run.thread_id) is None


def test_a_terminal_tool_ends_the_turn(site: MakeSite) -> None:
    desk = site([ScriptedReply(calls=[call("hand_off")])])

    @tool(terminal=True)
    def hand_off() -> str:
        """Hand the conversation to a person."""
        return "handed off"

    agent(name="shop", prompt="p", tools=[hand_off])(type("Shop", (), {}))
    run = desk.turn()
    assert (run.status, len(desk.provider.requests)) == ("completed", 1)


def test_transient_model_errors_are_tried_again_and_each_attempt_is_on_the_ledger(site: MakeSite) -> None:
    cut = ScriptedReply("Hel", error=ModelError(transient=True))
    desk = site([cut, "Hello."])
    run = desk.turn()
    assert (run.status, run.retries) == ("completed", 1)
    rows = desk.store.usage_of_run(run.id)
    assert [(row.step_key, row.tokens_source) for row in rows] == [("llm:0#1.1", "estimated"), ("llm:0", "reported")]
    kinds = [frame.get("kind") for frame in desk.frames(run.id)]
    assert kinds.index("step-restart") > kinds.index("text")
    assert desk.messages(run.thread_id)[-1].content == "Hello."


def test_a_model_that_stays_away_fails_the_run_with_a_sentence_that_hides_the_raw_text(site: MakeSite) -> None:
    desk = site(lambda _: RuntimeError("key sk-secret was refused"), MODEL_RETRIES=0)
    run = desk.turn()
    assert (run.status, run.error_code) == ("failed", "run_failed")
    assert run.error_message == "RuntimeError: key [hidden] was refused"
    end = desk.frames(run.id)[-1]["end"]
    assert end["code"] == "run_failed"
    assert "sk-secret" not in end["message"]
    assert desk.store.active_run_for_thread(run.thread_id) is None
    assert [row.step_key for row in desk.store.usage_of_run(run.id)] == ["llm:0#1.1"]


def test_an_empty_answer_is_no_answer(site: MakeSite) -> None:
    desk = site([ScriptedReply("")])
    run = desk.turn()
    assert (run.status, run.error_code) == ("failed", "model_no_output")
    assert [m.role for m in desk.messages(run.thread_id)] == ["user"]
    assert [row.step_key for row in desk.store.usage_of_run(run.id)] == ["llm:0"]


def test_a_blank_step_after_tools_is_not_a_failure(site: MakeSite, shop: Callable[[Site], None]) -> None:
    desk = site([ScriptedReply(calls=[call("look_up_order", number=1)]), ScriptedReply(" ")])
    shop(desk)
    run = desk.turn()
    assert run.status == "completed"
    assert [m.role for m in desk.messages(run.thread_id)] == ["user", "assistant"]


def test_the_next_turn_works_after_a_failed_one(site: MakeSite) -> None:
    desk = site([RuntimeError("away"), "Here again."], MODEL_RETRIES=0)
    failed = desk.turn("one")
    run = desk.turn("two", thread_id=failed.thread_id)
    assert run.status == "completed"
    assert [m.content for m in desk.provider.requests[-1].messages] == ["one", "two"]


def test_a_busy_thread_refuses_a_second_message(site: MakeSite) -> None:
    desk = site(["Hello."])
    first = desk.send("one")
    with pytest.raises(RunActive):
        desk.send("two", thread_id=first.thread_id)
    assert [m.content for m in desk.messages(first.thread_id)] == ["one"]


def test_strangers_and_unknown_threads_are_told_apart(site: MakeSite) -> None:
    desk = site(["Hello."])
    run = desk.turn()
    with pytest.raises(NotAllowed):
        desk.send("mine?", actor=BOB, thread_id=run.thread_id)
    with pytest.raises(NotFound):
        desk.send("there?", thread_id="unknown")


@pytest.mark.parametrize("text", ["", "  \n", "\u200b \ufeff", None])
def test_a_message_that_says_nothing_is_refused(site: MakeSite, text: str | None) -> None:
    desk = site([])
    with pytest.raises(Invalid) as refused:
        desk.send(text)
    assert refused.value.code == "empty_message"
    assert desk.store.list_threads(ALICE) == []


def test_regenerate_answers_the_last_message_anew(site: MakeSite) -> None:
    desk = site(["First.", "Second."])
    first = desk.turn("Say it")
    again = desk.turn(None, regenerate=True, thread_id=first.thread_id)
    assert [m.content for m in desk.messages(again.thread_id)] == ["Say it", "Second."]
    assert desk.steps(again.id)[0].name == "regenerate:truncate"
    assert len(desk.store.usage_of_run(first.id)) == 1  # the ledger keeps what was spent


def test_regenerate_needs_a_thread_and_something_to_answer(site: MakeSite) -> None:
    desk = site([])
    with pytest.raises(Invalid) as refused:
        desk.send(None, regenerate=True)
    assert refused.value.code == "regenerate_needs_thread"
    thread = desk.store.create_thread(actor=ALICE)
    with pytest.raises(Invalid) as nothing:
        desk.send(None, regenerate=True, thread_id=thread.id)
    assert nothing.value.code == "nothing_to_regenerate"
    assert desk.store.active_run_for_thread(thread.id) is None


class Endless:
    """A model that says one word and then nothing for ever; somebody has to break it off."""

    def __init__(self) -> None:
        self.driver: Driver | None = None

    async def stream(self, request: ModelRequest, emit: FrameEmitter) -> Reply:
        emit({"kind": "text", "text": "One "})
        assert self.driver is not None
        asyncio.get_running_loop().call_soon(self.driver.cancel)
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


def test_cancel_in_mid_answer_keeps_what_was_shown(site: MakeSite) -> None:
    model = Endless()
    desk = site([], PROVIDERS={"endless": model})
    run = desk.drive(desk.send().run_id, meanwhile=lambda driver: setattr(model, "driver", driver))
    assert (run.status, run.error_code) == ("cancelled", None)
    assert [frame.get("kind", "end") for frame in desk.frames(run.id)] == ["step-start", "text", "cancelled", "end"]
    assert [(m.role, m.content) for m in desk.messages(run.thread_id)] == [("user", "Hello"), ("assistant", "One ")]
    assert [m.run_status for m in desk.messages(run.thread_id)] == [None, "cancelled"]
    assert desk.store.active_run_for_thread(run.thread_id) is None
    (row,) = desk.store.usage_of_run(run.id)
    assert (row.step_key, row.tokens_source) == ("llm:0#1.1", "estimated")


def test_cancel_before_anybody_works_settles_at_once(site: MakeSite) -> None:
    desk = site([])
    admitted = desk.send()
    assert cancel(ALICE, admitted.run_id) is True
    assert [frame.get("kind", "end") for frame in desk.frames(admitted.run_id)] == ["cancelled", "end"]
    assert desk.drive(admitted.run_id).status == "cancelled"
    assert desk.store.active_run_for_thread(admitted.thread_id) is None
    with pytest.raises(NotFound):
        cancel(ALICE, admitted.run_id)


@pytest.mark.parametrize("end", ["failed", "cancelled"])
def test_a_first_turn_that_does_not_complete_gives_its_thread_a_title_too(site: MakeSite, end: str) -> None:
    desk = site([RuntimeError("no")])
    first = desk.send("Where  is order 1042?")
    if end == "cancelled":
        cancel(ALICE, first.run_id)
    assert desk.drive(first.run_id).status == end
    assert title(desk, first.thread_id) == "Where is order 1042?"
    second = desk.send("And 1043?", thread_id=first.thread_id)
    cancel(ALICE, second.run_id)
    assert title(desk, first.thread_id) == "Where is order 1042?", "a title that is there stays"


def title(desk: Site, thread_id: str) -> str:
    detail = desk.store.get_thread(thread_id)
    assert detail is not None
    return detail.summary.title


def test_cancel_after_the_last_model_call_still_counts(site: MakeSite) -> None:
    desk = site([])
    admitted = desk.send()

    async def script(_: ModelRequest) -> str:
        await in_db(desk.store.request_cancel, admitted.run_id)  # from another process: seen only at the settlement
        return "Too late."

    desk = site(script)
    run = desk.drive(admitted.run_id)
    assert run.status == "cancelled"
    assert [m.content for m in desk.messages(run.thread_id)] == ["Hello", "Too late."]
    assert [row.step_key for row in desk.store.usage_of_run(run.id)] == ["llm:0"]


def test_a_contributors_text_is_resolved_once_and_journaled(site: MakeSite) -> None:
    asked: list[str] = []

    def today(context: PromptContext) -> str:
        asked.append(context.thread_id)
        return "It is Monday."

    desk = site(["Yes."])
    agent(name="shop", prompt="Help.", contributors=[today, lambda _: None], tools=[])(type("Shop", (), {}))
    run = desk.turn()
    assert desk.provider.requests[-1].system == "Help.\n\nIt is Monday."
    assert asked == [run.thread_id]
    stages = next(step for step in desk.steps(run.id) if step.name == "run:prompt-stages")
    assert stages.payload["prompt"] == ["Help.", "It is Monday."]
    assert run.prompt_hash is not None
    assert len(run.prompt_hash) == 64


def test_the_same_key_starts_one_run(site: MakeSite) -> None:
    desk = site(["Hello."])
    first = desk.send("one", idempotency_key="k", fingerprint="f" * 64)
    again = desk.send("one", idempotency_key="k", fingerprint="f" * 64)
    assert (again.run_id, again.replayed, desk.runner.started) == (first.run_id, True, [first.run_id])


def test_a_persona_replaces_the_prompt_narrows_the_tools_and_stays_with_the_thread(
    site: MakeSite, shop: Callable[[Site], None]
) -> None:
    desk = site(["Hello.", "Again.", "Plain."])

    @tool
    def list_orders() -> str:
        """Every order."""
        return "none"

    shop(desk)
    formal = persona("formal", "Formal", "You are formal.", allowed_tools=["list_orders"])
    loud = persona("loud", "Loud", str.upper)
    agent(name="desk", prompt="Help.", tools=["look_up_order", list_orders], personas=[formal, loud])(
        type("Desk", (), {})
    )
    first = desk.turn(agent="desk", persona="formal")
    asked = desk.provider.requests[-1]
    assert (asked.system, [one.name for one in asked.tools]) == ("You are formal.", ["list_orders"])
    assert (first.persona, desk.messages(first.thread_id)[-1].persona) == ("formal", "formal")
    assert desk.steps(first.id)[1].name == "persona:resolve"
    again = desk.turn(thread_id=first.thread_id)
    assert (again.persona, desk.provider.requests[-1].system) == ("formal", "You are formal.")
    other = desk.turn(thread_id=first.thread_id, persona="loud")
    assert (other.persona, desk.provider.requests[-1].system) == ("loud", "HELP.")
    assert desk.store.persona_for_thread(first.thread_id) == "loud"


def test_an_unknown_persona_is_refused(site: MakeSite, shop: Callable[[Site], None]) -> None:
    desk = site([])
    shop(desk)
    with pytest.raises(Invalid) as refused:
        desk.send(persona="nobody")
    assert refused.value.code == "persona_not_found"


def test_a_model_is_shown_the_same_bytes_within_a_turn_and_in_the_next(site: MakeSite) -> None:
    desk = site([ScriptedReply(calls=[call("sort", zulu=1, alpha={"y": 1, "b": 2})]), "Sorted.", "Again."])

    @tool
    def sort(zulu: int, alpha: dict[str, int]) -> dict[str, int]:
        """Sort."""
        return {"z": zulu, "a": 1}

    agent(name="shop", prompt="p", tools=[sort])(type("Shop", (), {}))
    first = desk.turn()
    within = desk.provider.requests[-1].messages[-1]
    desk.turn(thread_id=first.thread_id)
    later = next(message for message in desk.provider.requests[-1].messages if message.tool_calls)
    assert repr(later.tool_calls) == repr(within.tool_calls)  # prompt caches depend on it, key order included
    assert repr(later.tool_results) == repr(within.tool_results)
