"""Two workers on one run: the one that was only slow finds that it has lost, and writes nothing any more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.utils import timezone

from agent.db import in_db
from agent.domain.model_calls import FrameEmitter, ModelRequest, Reply, ReplyCall
from agent.errors import LeaseLost, ModelError
from agent.flows.driver import Driver
from agent.flows.runner import drive
from agent.registry import PromptContext, agent, tool
from tests.flows.conftest import Site

MakeSite = Callable[..., Site]
Then = Callable[["Slow", FrameEmitter], Awaitable[Reply]]
ANSWER = Reply(text="By the second.")


def everything() -> dict[str, list[dict[str, Any]]]:
    """Every row of the agent's tables."""
    models = [model for model in apps.get_app_config("agent").get_models() if model._meta.managed]
    return {model._meta.db_table: list(model._default_manager.order_by("pk").values()) for model in models}


class Slow:
    """What keeps the first worker so long that a second one takes its run and ends it."""

    def __init__(self, then: Then | None = None) -> None:
        self.then = then
        self.desk: Site
        self.first: Driver
        self.met = False
        self.left: dict[str, list[dict[str, Any]]] | None = None  # what the second one left behind

    async def stream(self, request: ModelRequest, emit: FrameEmitter) -> Reply:
        emit({"kind": "text", "text": "By the "})
        if self.then is None or self.met:
            return ANSWER
        await self.overtaken()
        return await self.then(self, emit)

    async def overtaken(self) -> None:
        """Return when the second worker is done; at once for the second one itself."""
        if self.met:
            return
        self.met = True
        self.desk.store.clock = lambda: timezone.now() + timedelta(seconds=61)
        await drive(Driver(self.first.run_id))
        self.left = await in_db(everything)


async def answers(_: Slow, __: FrameEmitter) -> Reply:
    return Reply(text="By the first.")


async def goes_on_and_swallows_what_it_can(_: Slow, emit: FrameEmitter) -> Reply:
    for _again in range(20):
        try:
            emit({"kind": "reasoning", "text": "still here "})
            await in_db(lambda: None)  # meanwhile the frame is stored, or refused
        except Exception as error:
            raise AssertionError("a provider's own net has caught the signal") from error
    raise AssertionError("nobody told the first worker that it has lost")


async def fails(_: Slow, __: FrameEmitter) -> Reply:
    raise ModelError("away")


async def breaks(_: Slow, __: FrameEmitter) -> Reply:
    raise RuntimeError("a bug of the provider")


async def is_stopped(slow: Slow, emit: FrameEmitter) -> Reply:
    slow.first.cancel()
    return await answers(slow, emit)


async def hands_over(slow: Slow, emit: FrameEmitter) -> Reply:
    slow.first.hand_over()
    return await answers(slow, emit)


async def breaks_off(slow: Slow, _: FrameEmitter) -> Reply:
    slow.first.hand_over(now=True)
    await in_db(lambda: None)
    raise AssertionError("unreachable")


async def hears_of_it(slow: Slow, _: FrameEmitter) -> Reply:
    slow.first.lose()
    await in_db(lambda: None)
    raise AssertionError("unreachable")


def overtake(desk: Site, slow: Slow) -> None:
    """A turn whose first worker is overtaken; it must leave everything as the second one did."""
    slow.desk = desk
    run = desk.drive(desk.send().run_id, meanwhile=lambda driver: setattr(slow, "first", driver))
    assert slow.left is not None
    assert everything() == slow.left
    assert (run.status, run.attempt) == ("completed", 2)
    assert desk.messages(run.thread_id)[-1].content == ANSWER.text
    assert desk.frames(run.id)[-1] == {"end": None}


@pytest.mark.parametrize(
    "then",
    [
        answers,
        goes_on_and_swallows_what_it_can,
        fails,
        breaks,
        is_stopped,
        hands_over,
        breaks_off,
        hears_of_it,
    ],
)
def test_a_worker_overtaken_in_its_model_call_writes_nothing(site: MakeSite, then: Then) -> None:
    slow = Slow(then)
    overtake(site([], PROVIDERS={"slow": slow}), slow)


@pytest.mark.parametrize("failure", [None, RuntimeError("a bug of the tool")])
def test_a_worker_overtaken_in_a_tool_writes_nothing(site: MakeSite, failure: Exception | None) -> None:
    slow = Slow()

    class Asking:
        async def stream(self, request: ModelRequest, emit: FrameEmitter) -> Reply:
            if request.messages[-1].tool_results:
                return ANSWER
            return Reply(tool_calls=(ReplyCall(id="a", name="wait", input={}),))

    @tool
    async def wait() -> str:
        """Wait for a while."""
        await slow.overtaken()
        if failure is not None:
            raise failure
        return "waited"

    desk = site([], PROVIDERS={"asking": Asking()})
    agent(name="shop", prompt="p", tools=[wait])(type("Shop", (), {}))
    overtake(desk, slow)


def test_a_worker_overtaken_while_it_makes_the_prompt_writes_nothing(site: MakeSite) -> None:
    slow = Slow()

    async def today(context: PromptContext) -> str:
        await slow.overtaken()
        return "It is Monday."

    desk = site([], PROVIDERS={"slow": slow})
    agent(name="shop", prompt="p", contributors=[today], tools=[])(type("Shop", (), {}))
    overtake(desk, slow)


def test_a_lost_lease_is_no_exception_that_a_host_could_catch() -> None:
    assert not issubclass(LeaseLost, Exception)
    assert LeaseLost.agent_signal
