"""What is broken off: a turn, another answer to the same question, a turn that is asked to stop between its steps."""

from __future__ import annotations

from collections import Counter
from typing import Any

from agent.models import Run, RunStep
from tests.crash.conftest import Desk
from tests.crash.ending import End, Repeated, ended, ending, repeated
from tests.crash.site import CALLS, PIECES

COMMITS = 4  # start, llm:0, the three tools, and the end with llm:1, or the settlement of a run that was stopped
ROWS = 29  # frames of the undisturbed turn, the end included

COMMIT_PLACES = [f"commit:{number}:{when}" for number in range(1, COMMITS + 1) for when in ("before", "after")]
MODEL_PLACES = [f"model:{step}:{piece}" for step, count in enumerate(PIECES) for piece in range(count + 1)]
TOOL_PLACES = [f"tool:{call.name}:{when}" for call in CALLS for when in ("begin", "end")]
ROW_PLACES = ["rows:1:before", *(f"rows:{number}:after" for number in range(1, ROWS + 1))]
SOME_PLACES = [*COMMIT_PLACES, "model:0:7", "tool:look:end"]

PLACES = [
    *(("plain", place) for place in [*COMMIT_PLACES, *MODEL_PLACES, *TOOL_PLACES]),
    *(("shown", place) for place in ROW_PLACES),
    *(("regenerate", place) for place in [*SOME_PLACES, "model:1:3"]),
    *(("stop", place) for place in SOME_PLACES),
]
PLANS: dict[str, dict[str, Any]] = {"shown": {"slow": True}, "stop": {"stop": True}}


def begin(desk: Desk, scenario: str) -> str:
    """Send what the scenario is about; its run."""
    desk.plan = PLANS.get(scenario, {})
    if scenario != "regenerate":
        return desk.send()
    first = desk.send()
    assert desk.drive(first) == 0
    return desk.send(None, regenerate=True, thread_id=Run.objects.get(pk=first).thread_id)


def undisturbed(desk: Desk, scenario: str, known: dict[str, End]) -> End:
    """How the scenario ends when nobody dies; kept, since it is always the same."""
    if scenario not in known:
        run_id = begin(desk, scenario)
        assert desk.drive(run_id) == 0
        assert ended(run_id)
        assert repeated(run_id) == Repeated(attempt=1, retries=0, broken=[], restarts=[])
        known[scenario] = ending(run_id)
    return known[scenario]


def expected(run: Run) -> Repeated:
    """What the worker that goes on has to do again, by what the dead one left."""
    begun = run.effect_name or ""
    step = [int(begun.partition(":")[2])] if begun.startswith("llm:") else []
    asked = [] if run.cancel_requested_at else step  # a run that was asked to stop does so before that call
    recorded = RunStep.objects.filter(run=run, name__startswith="tool:").count()
    return Repeated(
        attempt=run.attempt + (run.settled_at is None),
        retries=len(asked) + (len(CALLS) - recorded if begun.startswith("tool:") else 0),
        broken=[f"llm:{number}#{run.attempt}.1" for number in step],
        restarts=asked,
    )


def check_effects(desk: Desk, again: Repeated, *, steps: int) -> None:
    """Each thing outside was done once, and once more where it is said; with the same key, and asked the same."""
    done = Counter(" ".join(line[:2]) for line in desk.touched())
    tools = {f"tool {call.name}" for call in CALLS}
    assert set(done) == {f"model {step}" for step in range(steps)} | tools
    repeated_models = {f"model {step}" for step in again.restarts}
    repeated_tools = tools if again.retries > len(again.restarts) else set()
    assert {name for name, count in done.items() if count > 1} <= repeated_models | repeated_tools
    assert max(done.values()) <= 2
    assert len({tuple(line) for line in desk.touched()}) == len(done)
