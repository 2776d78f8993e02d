"""Where a turn meets the limits of who asked (spec 03 §7, 08 §4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.utils import timezone

from agent.domain.actor import Actor
from agent.errors import OverQuota
from agent.models import UsageEntry
from agent.providers.scripted import ScriptedReply, call
from agent.registry import agent, tool
from tests.flows.conftest import Site
from tests.governance import rows

MakeSite = Callable[..., Site]
CALLS = ScriptedReply(calls=[call("spend")])


def test_who_has_used_up_the_day_is_refused_at_send(site: MakeSite) -> None:
    desk = site(["Hi."], QUOTA={"day": {"tokens": 100}})
    desk.turn()
    rows.entry(timezone.now(), actor_ref="alice")
    with pytest.raises(OverQuota) as caught:
        desk.send()
    assert caught.value.period == "day"


def test_a_turn_that_reaches_its_limit_fails_between_its_steps(site: MakeSite) -> None:
    desk = site([CALLS, "never said"], QUOTA={"day": {"tokens": 1000}})
    declare(lambda: rows.entry(timezone.now(), actor_ref="alice", input_tokens=1000))
    run = desk.turn()
    assert (run.status, run.error_code) == ("failed", "quota_exceeded")
    assert run.error_message == "OverQuota: The limit of this day is used up."
    names = [step.name for step in desk.steps(run.id)]
    assert "quota:check:1" in names
    assert "llm:1" not in names


def test_a_turn_within_its_limits_records_the_verdict_and_goes_on(site: MakeSite) -> None:
    desk = site([CALLS, "Done."], QUOTA={"day": {"tokens": 10**6, "reserve": 10**6 - 1}})
    declare(lambda: None)
    run = desk.turn()
    assert run.status == "completed"
    recorded = {step.name: step.payload for step in desk.steps(run.id)}
    assert recorded["quota:check:1"] == {"blocked": None}
    assert recorded["run:prompt-stages"]["quota"] is True


class Broken:
    def report(self, actor: Actor) -> Mapping[str, Any]:
        list(UsageEntry.objects.raw("SELECT * FROM no_such_table"))
        return {}


def test_a_policy_that_raises_is_no_verdict(site: MakeSite, caplog: pytest.LogCaptureFixture) -> None:
    desk = site([CALLS, "Done."], QUOTA={"day": {"usd": 1}}, QUOTA_POLICY=Broken())
    declare(lambda: None)
    run = desk.turn()
    assert run.status == "completed"
    assert caplog.text.count("could not be read") == 2


def declare(act: Callable[[], object]) -> None:
    """An agent with the tool `spend`, which does what the test wants while the turn runs."""

    @tool
    def spend() -> str:
        """Costs something."""
        act()
        return "spent"

    agent(name="shop", prompt="p", tools=[spend])(type("Shop", (), {}))
