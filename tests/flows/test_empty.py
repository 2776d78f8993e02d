"""B14: what is empty: refused where it asks for nothing, lawful as a result, a failure where it is the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agent.domain.model_calls import ModelRequest
from agent.errors import Invalid
from agent.flows import queue
from agent.flows.queue import Edit
from agent.models import Message, Run, Thread
from agent.providers.scripted import ScriptedReply, call
from agent.registry import agent, tool
from agent.testing import InMemoryStagingStore
from tests.flows.conftest import ALICE, Site
from tests.flows.test_attachments import stage, taking

MakeSite = Callable[..., Site]
BLANK = [
    "",
    " ",
    "\n\t",
    "\u200b",
    "\u00a0",
    "\u2060",
    "\ufeff",
    "\u200d\u200c",
    "\u3000",
    "\u00ad",
    "\u2003 \u200b",
    "\u3164",
    "\u2800",
]


@pytest.mark.parametrize("text", BLANK, ids=ascii)
def test_a_message_of_nothing_is_refused_before_any_work(site: MakeSite, text: str) -> None:
    desk = site(["Hi."])
    for mode in ("auto", "queue", "interrupt"):
        with pytest.raises(Invalid) as refused:
            desk.submit(text, mode=mode)
        assert refused.value.code == "empty_message"
    assert (Thread.objects.count(), Run.objects.count(), len(desk.provider.requests)) == (0, 0, 0)
    busy = desk.send()
    waits = desk.wait("And then?", busy.thread_id)
    with pytest.raises(Invalid):
        queue.edit(ALICE, waits.message_id, Edit(message=text))
    assert desk.waiting(busy.thread_id) == ["And then?"]


@pytest.mark.parametrize("text", ["", " ", "\u200b"], ids=ascii)
def test_a_file_without_words_is_a_message(site: MakeSite, text: str) -> None:
    staging = InMemoryStagingStore()
    desk = site(["A lamp."], **taking(staging))
    run = desk.turn(text, attachments=(stage().media_id,))
    assert run.status == "completed"
    assert [bool(message.attachments) for message in desk.messages(run.thread_id)] == [True, False]


@pytest.mark.parametrize("output", ["", None, [], {}, 0, False], ids=repr)
def test_an_empty_result_is_a_result(site: MakeSite, output: Any) -> None:
    asked: list[ModelRequest] = []

    def script(request: ModelRequest) -> Any:
        asked.append(request)
        return ScriptedReply(calls=[call("look")]) if len(asked) == 1 else "Nothing there."

    @tool
    def look() -> Any:
        """Look."""
        return output

    desk = site(script)
    agent(name="desk", prompt="You help.", tools=[look])(type("Desk", (), {}))
    run = desk.turn(agent="desk")
    assert run.status == "completed"
    (result,) = asked[-1].messages[-1].tool_results
    assert (result.output, result.failed) == (output, False)
    (kept,) = desk.messages(run.thread_id)[1].tool_results or []
    assert (kept["output"], "error" in kept) == (output, False)
    told = [frame for frame in desk.frames(run.id) if frame.get("kind") == "tool-output"]
    assert [frame["output"] for frame in told] == [output]


@pytest.mark.parametrize("text", ["", " \n", "\u200b"], ids=ascii)
def test_an_answer_of_nothing_is_none_and_leaves_no_bubble(site: MakeSite, text: str) -> None:
    desk = site([ScriptedReply(text), "Now."])
    run = desk.turn()
    assert (run.status, run.error_code) == ("failed", "model_no_output")
    assert [message.role for message in desk.messages(run.thread_id)] == ["user"]
    assert not Message.objects.filter(role="assistant").exists()
    assert desk.turn("Again?", thread_id=run.thread_id).status == "completed"
