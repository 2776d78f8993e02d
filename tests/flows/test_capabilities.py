"""What a client renders: a component that it does not is given to it in words, as a message of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agent.domain.capabilities import words_for
from agent.providers.scripted import ScriptedReply, call
from agent.registry import Presentation, ToolContext, agent, tool
from tests.flows.conftest import Site

MakeSite = Callable[..., Site]
CHART = {"id": "c", "component": "chart", "version": "2", "props": {"n": 1}, "fallbackText": "Sales went up."}


def able(*components: tuple[str, str]) -> dict[str, Any]:
    return {"components": [{"name": name, "version": version} for name, version in components]}


@pytest.mark.parametrize(
    ("capabilities", "words"),
    [
        (None, ""),
        (able(), "Sales went up."),
        (able(("chart", "2")), ""),
        (able(("chart", "2.0"), ("table", "2")), "Sales went up."),
    ],
    ids=["said-nothing", "renders-none", "renders-it", "another-version"],
)
def test_words_stand_for_what_is_not_rendered_in_exactly_this_version(
    capabilities: dict[str, Any] | None, words: str
) -> None:
    spoken = {"id": "t", "component": "text", "props": {"text": "Hi"}, "fallbackText": "Hi"}
    assert words_for([CHART, spoken, {"id": "m", "component": "map", "props": {}}], capabilities) == words


def test_any_version_does_for_a_component_without_one() -> None:
    plain = {name: value for name, value in CHART.items() if name != "version"}
    assert words_for([plain], able(("chart", "7"))) == ""


@pytest.fixture
def desk(site: MakeSite) -> Site:
    made = site([ScriptedReply("Look:", calls=[call("draw")]), "That was it."])

    @tool(present=lambda given, output: Presentation(text="Drawn."))
    def draw(ctx: ToolContext) -> str:
        """Draw."""
        ctx.emit_ui("chart", {"n": 1}, id="c", version="2", fallback_text="Sales went up.")
        ctx.emit_ui("chart", {"n": 0}, id="d", version="1", fallback_text="Nothing.", partial=True)
        return "drawn"

    agent(name="desk", prompt="p", tools=[draw])(type("Desk", (), {}))
    return made


def test_a_client_that_renders_less_is_told_in_words_live_and_in_the_conversation(desk: Site) -> None:
    run = desk.turn("Sales?", ui_capabilities=able(("chart", "1")))
    assert run.status == "completed"
    _, first, words, last = desk.messages(run.thread_id)
    assert (first.content, words.content, last.content) == ("Look:", "Sales went up.", "That was it.")
    assert [(one["component"], one.get("version")) for one in first.ui or ()] == [("chart", "2"), ("text", None)]
    assert words.run_id == run.id
    told = [frame["text"] for frame in desk.frames(run.id) if frame.get("kind") == "text"]
    assert told.count("Sales went up.") == 1
    (payload,) = [step.payload for step in desk.steps(run.id) if step.name == "persist:tool-outputs:0"]
    assert payload == {"messageIds": [first.id, words.id], "words": "Sales went up.", "terminal": False}


@pytest.mark.parametrize("capabilities", [None, able(("chart", "2"))], ids=["said-nothing", "renders-it"])
def test_a_client_that_renders_it_or_says_nothing_has_the_component_alone(
    desk: Site, capabilities: dict[str, Any] | None
) -> None:
    run = desk.turn("Sales?", ui_capabilities=capabilities)
    assert [message.content for message in desk.messages(run.thread_id)] == ["Sales?", "Look:", "That was it."]
    drawn = [frame for frame in desk.frames(run.id) if frame.get("component") == "chart" and "partial" not in frame]
    assert {frame["fallbackText"] for frame in drawn} == {"Sales went up."}
