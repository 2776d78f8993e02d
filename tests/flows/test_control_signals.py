"""Signals of a run pass through a host's `except Exception`, wherever its code is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from agent.domain.model_calls import FrameEmitter, ModelRequest, Reply, ReplyCall
from agent.errors import Cancelled, LeaseLost, Parked, Signal
from agent.registry import PromptContext, agent, tool
from tests.flows.conftest import Site

MakeSite = Callable[..., Site]


@contextmanager
def a_hosts_net() -> Iterator[None]:
    """What cautious code does around everything that it calls."""
    try:
        yield
    except Exception as error:
        raise AssertionError("a host has caught a signal of the run") from error


class Asking:
    """A model that calls the tool `work` once, and meets the signal itself where it is to."""

    def __init__(self, signal: type[Signal] | None = None) -> None:
        self.signal = signal

    async def stream(self, request: ModelRequest, emit: FrameEmitter) -> Reply:
        with a_hosts_net():
            if self.signal is not None:
                raise self.signal
        if request.messages[-1].tool_results:
            return Reply(text="Done.")
        return Reply(tool_calls=(ReplyCall(id="a", name="work", input={}),))


def in_a_tool(signal: type[Signal]) -> dict[str, Any]:
    @tool
    def work() -> str:
        """Work."""
        with a_hosts_net():
            raise signal

    return {"tools": [work]}


def in_an_async_tool(signal: type[Signal]) -> dict[str, Any]:
    @tool
    async def work() -> str:
        """Work."""
        with a_hosts_net():
            raise signal

    return {"tools": [work]}


def in_a_contributor(signal: type[Signal]) -> dict[str, Any]:
    def today(context: PromptContext) -> str:
        with a_hosts_net():
            raise signal

    return {"contributors": [today], "tools": []}


def in_an_async_contributor(signal: type[Signal]) -> dict[str, Any]:
    async def today(context: PromptContext) -> str:
        with a_hosts_net():
            raise signal

    return {"contributors": [today], "tools": []}


def in_a_provider(signal: type[Signal]) -> dict[str, Any]:
    return {"tools": [], "provider": Asking(signal)}


Place = Callable[[type[Signal]], dict[str, Any]]
PLACES = [in_a_tool, in_an_async_tool, in_a_contributor, in_an_async_contributor, in_a_provider]


def made(site: MakeSite, place: Place, signal: type[Signal]) -> Site:
    declared = place(signal)
    desk = site([], PROVIDERS={"asking": declared.pop("provider", Asking())})
    agent(name="shop", prompt="p", **declared)(type("Shop", (), {}))
    return desk


@pytest.mark.parametrize("place", PLACES)
def test_a_stop_that_is_met_in_a_hosts_code_cancels_the_run(site: MakeSite, place: Place) -> None:
    desk = made(site, place, Cancelled)
    run = desk.turn()
    assert (run.status, run.error_code) == ("cancelled", None)
    assert [frame.get("kind", "end") for frame in desk.frames(run.id)][-2:] == ["cancelled", "end"]
    assert desk.store.active_run_for_thread(run.thread_id) is None


@pytest.mark.parametrize("place", PLACES)
def test_a_lost_lease_that_is_met_in_a_hosts_code_leaves_the_run_to_its_owner(site: MakeSite, place: Place) -> None:
    desk = made(site, place, LeaseLost)
    run = desk.turn()
    assert (run.status, run.settled_at) == ("running", None)
    assert not any("end" in frame for frame in desk.frames(run.id))
    assert desk.store.active_run_for_thread(run.thread_id) == run.id


@pytest.mark.parametrize("place", PLACES)
def test_a_wait_for_a_person_is_no_failure_of_a_hosts_code(site: MakeSite, place: Place) -> None:
    desk = made(site, place, Parked)
    run_id = desk.send().run_id
    with suppress(Parked):
        desk.drive(run_id)
    run = desk.store.get_run(run_id)
    assert run is not None
    assert (run.settled_at, run.error_code) == (None, None)


@pytest.mark.parametrize("signal", [Parked, Cancelled, LeaseLost])
def test_a_signal_is_told_by_its_mark(signal: type[Signal]) -> None:
    assert signal.agent_signal
    assert not issubclass(signal, Exception)
