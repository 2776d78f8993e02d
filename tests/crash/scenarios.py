"""What is broken off: a turn, another answer to the same question, a turn that is asked to stop between its steps, and
one that folds what was said before into a summary."""

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
# A summary is an effect, and has a commit, of its own: after the start, before the first model call.
SUMMARY_PLACES = [*SOME_PLACES, f"commit:{COMMITS + 1}:before", f"commit:{COMMITS + 1}:after"]
SUMMARY_PLACES += ["summary:begin", "summary:end", "rows:1:before"]

PLACES = [
    *(("plain", place) for place in [*COMMIT_PLACES, *MODEL_PLACES, *TOOL_PLACES]),
    *(("shown", place) for place in ROW_PLACES),
    *(("regenerate", place) for place in [*SOME_PLACES, "model:1:3"]),
    *(("stop", place) for place in SOME_PLACES),
    *(("summary", place) for place in SUMMARY_PLACES),
]
PLANS: dict[str, dict[str, Any]] = {"shown": {"slow": True}, "stop": {"stop": True}}
AGAIN: dict[str, dict[str, Any]] = {  # what is sent to a thread that has been answered
    "regenerate": {"message": None, "regenerate": True},
    "summary": {"agent": "forgetful"},
}
ASKED = {"stop": {"0"}, "summary": {"summary", "0", "1"}}  # model calls of a turn, where they are not the two


def begin(desk: Desk, scenario: str) -> str:
    """Send what the scenario is about; its run."""
    desk.plan = PLANS.get(scenario, {})
    first = desk.send()
    if scenario not in AGAIN:
        return first
    assert desk.drive(first) == 0
    return desk.send(**AGAIN[scenario], thread_id=Run.objects.get(pk=first).thread_id)


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
    in_call = begun.startswith(("llm:", "history:summarize"))
    asked = in_call and not run.cancel_requested_at  # a run that was asked to stop does so before that call
    recorded = RunStep.objects.filter(run=run, name__startswith="tool:").count()
    return Repeated(
        attempt=run.attempt + (run.settled_at is None),
        retries=asked + (len(CALLS) - recorded if begun.startswith("tool:") else 0),
        broken=[f"{begun}#{run.attempt}.1"] if in_call else [],
        restarts=[int(begun.partition(":")[2])] if asked and begun.startswith("llm:") else [],
    )


def check_effects(desk: Desk, again: Repeated, scenario: str) -> None:
    """Each thing outside was done once, and once more where it is said; with the same key, and asked the same."""
    done = Counter(" ".join(line[:2]) for line in desk.touched())
    tools = {f"tool {call.name}" for call in CALLS}
    assert set(done) == {f"model {asked}" for asked in ASKED.get(scenario, {"0", "1"})} | tools
    steps = [key.partition("#")[0] for key in again.broken]
    repeated_models = {f"model {'summary' if step == 'history:summarize' else step[4:]}" for step in steps}
    repeated_tools = tools if again.retries > len(steps) else set()
    assert {name for name, count in done.items() if count > 1} <= repeated_models | repeated_tools
    assert max(done.values()) <= 2
    assert len({tuple(line) for line in desk.touched()}) == len(done)
