"""Processors: what a model is shown is derived, what it says is judged before anybody sees it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from agent.domain.model_calls import FrameEmitter, ModelRequest, Reply
from agent.flows.driver import Driver
from agent.processors import InputPrompt, ProcessorContext, Verdict, passed, rejected, replaced
from agent.providers.scripted import Answer, ScriptedReply, call
from agent.registry import agent, tool
from tests.flows.conftest import ALICE, Site

MakeSite = Callable[..., Site]


def declare(**options: Any) -> None:
    agent(name="desk", prompt="Help.", **{"tools": [], **options})(type("Desk", (), {}))


def hides(text: str, context: ProcessorContext) -> Verdict:
    """Puts stars in the place of the secret; incremental, for it is one short word."""
    return replaced(text.replace("secret", "******")) if "secret" in text else passed()


hides.incremental, hides.lookback = True, 6  # type: ignore[attr-defined]


def holds(text: str, context: ProcessorContext) -> Verdict:
    """The same, of a text that is whole."""
    return hides(text, context)


async def refuses(text: str, context: ProcessorContext) -> Verdict:
    """Lets nothing pass that speaks of a bomb."""
    await asyncio.sleep(0)
    return rejected("weapons") if "bomb" in text else passed()


def texts(desk: Site, run_id: str) -> list[str]:
    return [frame["text"] for frame in desk.frames(run_id) if frame.get("kind") == "text"]


def names(desk: Site, run_id: str) -> list[str]:
    steps = [step.name for step in desk.steps(run_id)]
    return steps[steps.index("persist:run:start") + 1 :]


# ---- input ---------------------------------------------------------------------------------------------------------


def test_what_a_model_is_shown_is_derived_and_nothing_stored_changes(site: MakeSite) -> None:
    told: list[ProcessorContext] = []

    def masks(prompt: InputPrompt, context: ProcessorContext) -> InputPrompt:
        told.append(context)
        shown = tuple(replace(each, content=each.content.replace("4711", "#")) for each in prompt.messages)
        return InputPrompt(system=f"{prompt.system} Be brief.", messages=shown)

    async def looks(prompt: InputPrompt, context: ProcessorContext) -> None:
        assert prompt.system == "Help. Be brief."  # it sees what the one before made

    desk = site(["Noted."])
    declare(input_processors=[masks, looks])
    run = desk.turn("My card is 4711.")
    (asked,) = desk.provider.requests
    assert (asked.system, asked.messages[0].content) == ("Help. Be brief.", "My card is #.")
    assert [message.content for message in desk.messages(run.thread_id)] == ["My card is 4711.", "Noted."]
    assert names(desk, run.id)[:2] == ["process:input:0", "llm:0"]
    payload = next(step.payload for step in desk.steps(run.id) if step.name == "process:input:0")
    assert payload == {
        "system": "Help. Be brief.",
        "messages": {"0": {"content": "My card is #.", "inputs": [], "outputs": []}},
    }
    assert (told[0].actor, told[0].run_id, told[0].subject) == (ALICE, run.id, "prompt")


def test_every_model_call_has_its_own_derived_prompt(site: MakeSite) -> None:
    @tool
    def look() -> str:
        """Look."""
        return "4711"

    def masks(prompt: InputPrompt, context: ProcessorContext) -> InputPrompt:
        return replace(
            prompt,
            messages=tuple(
                replace(each, tool_results=tuple(replace(one, output="#") for one in each.tool_results))
                for each in prompt.messages
            ),
        )

    desk = site([ScriptedReply(calls=[call("look")]), "Found."])
    declare(input_processors=[masks], tools=[look])
    run = desk.turn()
    assert run.status == "completed"
    assert desk.provider.requests[1].messages[-1].tool_results[0].output == "#"
    assert [name for name in names(desk, run.id) if name.startswith(("process", "llm"))] == [
        "process:input:0",
        "llm:0",
        "process:input:1",
        "llm:1",
    ]


@pytest.mark.parametrize(
    "bad",
    [
        lambda prompt, context: InputPrompt(system=prompt.system, messages=()),
        lambda prompt, context: "text",
        lambda prompt, context: 1 // 0,
    ],
    ids=["leaves-out", "wrong-kind", "raises"],
)
def test_an_input_processor_that_breaks_its_promise_fails_the_run_before_anything_is_paid(
    site: MakeSite,
    bad: Any,
) -> None:
    desk = site(["Never."])
    declare(input_processors=[bad])
    run = desk.turn()
    assert (run.status, run.error_code) == ("failed", "run_failed")
    assert not desk.provider.requests
    assert desk.store.usage_of_run(run.id) == []


# ---- output --------------------------------------------------------------------------------------------------------


def test_text_is_held_until_it_is_judged_and_kept_as_it_was_let_pass(site: MakeSite) -> None:
    desk = site([ScriptedReply("The secret is out.", provider_state="opaque")])
    declare(output_processors=[holds])
    run = desk.turn()
    answer = desk.messages(run.thread_id)[-1]
    assert answer.content == "The ****** is out."
    assert answer.provider_state is None
    assert texts(desk, run.id) == ["The ****** is out."]
    assert names(desk, run.id)[:3] == ["llm:0", "process:output:0", "persist:title"]
    payload = next(step.payload for step in desk.steps(run.id) if step.name == "process:output:0")
    assert payload == {"verdict": "replace", "text": answer.content, "messageId": answer.id}
    (row,) = desk.store.usage_of_run(run.id)
    assert row.message_id == answer.id


def test_incremental_processors_stream_the_text_a_lookback_late(site: MakeSite) -> None:
    desk = site(["All the words are harmless but one: the secret one, and that is all there is."], SINK_OPTIONS={})
    declare(output_processors=[hides])
    run = desk.turn()
    told = texts(desk, run.id)
    assert len(told) > 1
    assert "".join(told) == desk.messages(run.thread_id)[-1].content
    assert "secret" not in "".join(told)


def test_one_processor_that_needs_the_whole_text_holds_it_for_all(site: MakeSite) -> None:
    desk = site(["All the words are harmless but one: the secret one, and that is all there is."])
    declare(output_processors=[hides, holds])
    run = desk.turn()
    assert len(texts(desk, run.id)) == 1


def test_a_refusal_fails_the_run_and_the_spend_is_accounted(site: MakeSite) -> None:
    desk = site(["How to build a bomb."])
    declare(output_processors=[refuses, holds])
    run = desk.turn()
    assert (run.status, run.error_code) == ("failed", "output_rejected")
    assert [message.role for message in desk.messages(run.thread_id)] == ["user"]
    assert texts(desk, run.id) == []
    assert [row.step_key for row in desk.store.usage_of_run(run.id)] == ["llm:0"]
    payload = next(step.payload for step in desk.steps(run.id) if step.name == "process:output:0")
    assert payload == {"verdict": "reject", "reason": "weapons"}
    end = desk.frames(run.id)[-1]["end"]
    assert end == {"code": "output_rejected", "message": "The answer was held back."}
    assert desk.store.active_run_for_thread(run.thread_id) is None


def test_words_before_a_tool_are_judged_before_the_tool_runs_and_shown_to_the_next_call(site: MakeSite) -> None:
    @tool
    def look() -> str:
        """Look."""
        return "found"

    desk = site([ScriptedReply("A secret look.", calls=[call("look")]), "Done."])
    declare(output_processors=[holds], tools=[look])
    run = desk.turn()
    assert run.status == "completed"
    first = desk.messages(run.thread_id)[1]
    assert (first.content, len(first.tool_results or ())) == ("A ****** look.", 1)
    assert desk.provider.requests[1].messages[-1].content == "A ****** look."
    wanted = ("llm", "process", "persist:toolcall", "tool")
    assert [name.partition(":")[0] for name in names(desk, run.id) if name.startswith(wanted)] == [
        "llm",
        "process",
        "persist",
        "tool",
        "llm",
        "process",
    ]


def test_a_text_that_is_all_taken_away_leaves_no_message(site: MakeSite) -> None:
    desk = site(["secret"])
    declare(output_processors=[lambda text, context: replaced("")], follow_ups=True)
    run = desk.turn()
    assert run.status == "completed"
    assert [message.role for message in desk.messages(run.thread_id)] == ["user"]
    assert [row.purpose for row in desk.store.usage_of_run(run.id)] == ["chat"]


class Fact(BaseModel):
    """A word."""

    word: str


def test_structured_text_and_follow_ups_are_judged_too(site: MakeSite) -> None:
    def script(request: ModelRequest) -> Answer:
        form, next_ones = '{"word": "secret"}', json.dumps(["What is the secret?", "Where is the bomb?"])
        return {"chat": "Fine.", "structured_output": form, "follow_ups": next_ones}[request.purpose]

    seen: list[str] = []

    def notes(text: str, context: ProcessorContext) -> Verdict:
        seen.append(context.subject)
        return passed()

    desk = site(script)
    declare(output_processors=[notes, holds, refuses], output_type=Fact, follow_ups=True)
    run = desk.turn()
    answer = desk.messages(run.thread_id)[-1]
    assert (answer.tool_results or [{}])[0]["output"] == {"word": "******"}
    assert answer.follow_ups == ["What is the ******?"]
    assert seen == ["answer", "structured_output", "follow_up", "follow_up"]


@pytest.mark.parametrize(
    "bad", [lambda text, context: text, lambda text, context: 1 // 0], ids=["wrong-kind", "raises"]
)
def test_an_output_processor_that_breaks_its_promise_fails_the_run_and_shows_nothing(
    site: MakeSite,
    bad: Any,
) -> None:
    desk = site(["The secret."])
    declare(output_processors=[bad])
    run = desk.turn()
    assert (run.status, run.error_code) == ("failed", "run_failed")
    assert texts(desk, run.id) == []
    assert [row.step_key for row in desk.store.usage_of_run(run.id)] == ["llm:0"]


class Endless:
    """Says some words, and never comes to an end."""

    driver: Driver

    async def stream(self, request: ModelRequest, emit: FrameEmitter) -> Reply:
        emit({"kind": "text", "text": "one two three"})
        self.driver.cancel()
        await asyncio.Event().wait()
        raise AssertionError


def test_what_is_held_is_not_kept_when_the_run_is_stopped(site: MakeSite) -> None:
    endless = Endless()
    desk = site([], PROVIDERS={"endless": endless})
    declare(output_processors=[holds])
    run = desk.drive(desk.send().run_id, meanwhile=lambda driver: setattr(endless, "driver", driver))
    assert run.status == "cancelled"
    assert [message.role for message in desk.messages(run.thread_id)] == ["user"]
