"""Every kept journal, cut at every position: the run goes on from there and ends as it did when it was recorded."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from agent.flows.recovery import recover
from tests.anonymous import Anonymous
from tests.flows.conftest import Site
from tests.golden.journals import Golden, as_asked, as_message, decide, load, read
from tests.golden.shapes import SHAPES, Player, Shape, declare

MakeSite = Callable[..., Site]
ASIDE = {"history:summarize": "history_summary", "structured": "structured_output", "followups": "follow_ups"}
CALLS = ("llm:", *ASIDE)


def positions() -> list[tuple[str, int]]:
    """Where each journal may be cut: after the admission, before the end; an old one once its shape is recorded."""
    return [
        (name, upto) for name, shape in SHAPES.items() for upto in range(2 if shape.old else 1, len(read(name).steps))
    ]


def expected_bodies(golden: Golden, upto: int) -> Counter[str]:
    """The bodies that have still to run: those of calls without a record, and the prompt's until it is recorded."""
    calls = [call for step in golden.steps for call in (step["payload"] or {}).get("toolCalls", [])]
    names = {f"tool:{call['id']}": call["name"] for call in calls if call["kind"] != "agent"}
    later = [step["name"] for step in golden.steps[upto:]]
    bodies = Counter(names[name] for name in later if name in names)
    if "run:prompt-stages" in later and golden.run["agent_name"] == "dated":
        bodies["today"] += 1
    return bodies


def goes_on(golden: Golden, upto: int) -> list[dict[str, Any]]:
    """The whole journal of a run that goes on from there: what was not recorded yet gets today's shape."""
    steps = [{**step} for step in golden.steps]
    for step in steps[upto:]:
        if step["name"] == "run:prompt-stages":
            hands_off = golden.run["agent_name"] == "desk"
            step["payload"] = {**step["payload"], "terminalTools": ["hand_off"] if hands_off else []}
    return steps


def made(
    site: MakeSite,
    shape: Shape,
    settings: Mapping[str, Any] | None = None,
    **declared: Any,
) -> tuple[Site, Player, Counter[str]]:
    player = Player(shape)
    desk = site([], PROVIDERS={"player": player}, DEFAULT_AGENT="desk", **(settings or shape.settings))
    return desk, player, declare(**declared)


@pytest.mark.parametrize(("name", "upto"), positions())
def test_a_recorded_run_completes_on_its_own_positions(site: MakeSite, name: str, upto: int) -> None:
    shape, golden = SHAPES[name], read(name)
    desk, player, ran = made(site, shape)
    run_id = load(desk.store, golden, upto)
    run = desk.drive(run_id)
    while run.status == "waiting":
        decide(desk.store, run_id, shape.decided)
        run = desk.drive(run_id)
    assert (run.status, run.error_message) == ("completed", None)

    steps = [{"name": step.name, "payload": step.payload} for step in desk.steps(run_id)]
    assert steps[:upto] == golden.steps[:upto]
    messages = [as_message(message) for message in desk.messages(run.thread_id)]
    told, known = Anonymous(), Anonymous()
    assert told(steps) == known(goes_on(golden, upto))
    assert json.loads(told(messages)) == json.loads(known(golden.after))

    asked = {str(step): as_asked(request) for step, request in player.asked.items()}
    recorded = {step["name"] for step in golden.steps[:upto]}
    assert Anonymous()(asked) == Anonymous()({s: a for s, a in golden.asked.items() if f"llm:{s}" not in recorded})
    assert ran == expected_bodies(golden, upto)
    usage = [row.step_key for row in desk.store.usage_of_run(run_id)]
    assert usage == [step["name"] for step in golden.steps if step["name"].startswith(CALLS)]
    begun = Counter(of for step in golden.steps[upto:] for name, of in ASIDE.items() if step["name"].startswith(name))
    assert player.aside == begun
    assert desk.store.active_run_for_thread(run.thread_id) is None


def test_every_shape_has_its_journal() -> None:
    assert all(read(name).steps[-1]["name"] == "persist:run:end" for name in SHAPES)


def test_the_old_shape_holds_the_whole_thread_and_shows_what_the_policy_chooses() -> None:
    old, new = read("old-plain"), read("talk")
    assert [step["name"] for step in old.steps] == [
        step["name"] for step in new.steps if not step["name"].startswith("patch:")
    ]
    assert len(old.steps[1]["payload"]["messages"]) == 5
    assert len(new.steps[2]["payload"]["messages"]) < 5
    assert old.asked["0"]["messages"] == new.asked["0"]["messages"]


LATER = {"HISTORY": {"max_messages": 1}, "MAX_STEPS": 1}


@pytest.mark.parametrize("name", ["talk", "reads", "summary", "old-reads"])
def test_a_run_goes_on_as_it_began_whatever_a_later_release_declares(site: MakeSite, name: str) -> None:
    golden = read(name)
    started = next(at for at, step in enumerate(golden.steps, 1) if step["name"] == "persist:run:start")
    if golden.steps[1]["name"] == "load:thread":  # the old shape chooses outside of the step, by today's policy
        later: dict[str, Any] = {**SHAPES[name].settings, "MAX_STEPS": 1}
    else:
        later = LATER
    desk, player, _ = made(site, SHAPES[name], later, prompt="Another prompt.")
    run = desk.drive(load(desk.store, golden, started))
    assert run.status == "completed"
    asked = {str(step): as_asked(request) for step, request in player.asked.items()}
    assert Anonymous()(asked) == Anonymous()(golden.asked)


def at_tool(name: str) -> list[tuple[str, int]]:
    """Where a run of a terminal tool may be cut: once it is recorded that it is one, until its outcome is."""
    steps = read(name).steps
    known = "persist:run:start" if "terminalTools" in str(steps) else "persist:toolcall:"
    first = next(at for at, step in enumerate(steps, 1) if step["name"].startswith(known))
    last = max(at for at, step in enumerate(steps) if step["name"].startswith("tool:"))
    return [(name, upto) for upto in range(first, last + 1)]


@pytest.mark.parametrize(("name", "upto"), [*at_tool("terminal-named"), *at_tool("terminal")])
def test_which_tool_ends_a_turn_is_what_the_run_recorded_not_what_is_declared_now(
    site: MakeSite, name: str, upto: int
) -> None:
    golden = read(name)
    desk, _, _ = made(site, SHAPES[name], terminal=["look_up"])
    run_id = load(desk.store, golden, upto)
    assert desk.drive(run_id).status == "completed"
    steps = [{"name": step.name, "payload": step.payload} for step in desk.steps(run_id)]
    assert Anonymous()(steps) == Anonymous()(golden.steps)


@pytest.mark.parametrize("recorded", [False, True])
def test_a_tool_that_is_gone_meanwhile_has_failed_unless_it_was_done(site: MakeSite, recorded: bool) -> None:
    golden = read("reads")
    done = next(at for at, step in enumerate(golden.steps, 1) if step["name"] == "persist:tool-outputs:0")
    desk, _, ran = made(site, SHAPES["reads"], without=["look_up"])
    run = desk.drive(load(desk.store, golden, done if recorded else done - 3))
    assert run.status == "completed"
    first = next(message for message in desk.messages(run.thread_id) if message.tool_calls)
    results = first.tool_results or []
    assert [result["id"] for result in results] == [call["id"] for call in first.tool_calls or ()]
    assert ["error" in result for result in results] == [not recorded, not recorded]
    rows = [desk.store.get_tool_call(result["id"]) for result in results]
    assert [row and row.status for row in rows] == ["auto_executed" if recorded else "failed"] * 2
    told = [frame["id"] for frame in desk.frames(run.id) if frame.get("kind") == "tool-output-error"]
    assert recorded or told[:2] == [result["id"] for result in results]
    assert not ran


def renamed() -> list[tuple[str, int]]:
    return [(name, at) for name in ("reads", "failing", "old-plain") for at in range(len(read(name).steps) - 1)]


@pytest.mark.parametrize(("name", "at"), renamed())
def test_a_journal_that_does_not_fit_fails_the_run_and_touches_nothing(site: MakeSite, name: str, at: int) -> None:
    golden = read(name)
    desk, player, ran = made(site, SHAPES[name])
    run_id = load(desk.store, golden, len(golden.steps) - 1, foreign=at)
    before = desk.steps(run_id)
    run = desk.drive(run_id)
    assert (run.status, run.error_code) == ("failed", "replay_diverged")
    assert not player.asked
    assert not ran
    assert desk.steps(run_id) == before
    assert desk.frames(run_id)[-1]["end"]["code"] == "replay_diverged"
    assert desk.store.active_run_for_thread(run.thread_id) is None

    assert recover(queued_for=0) == 0
    assert desk.drive(run_id) == run
