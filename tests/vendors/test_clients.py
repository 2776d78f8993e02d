"""Connections: kept within a loop, closed with it, never piled up."""

from __future__ import annotations

import asyncio
import gc

import pytest
from asgiref.sync import async_to_sync

from agent.testing.contracts.provider import VendorAnswer
from tests.vendors.asking import USAGE, request
from tests.vendors.conftest import Wire

pytestmark = pytest.mark.once

DONE = VendorAnswer(text=("Sent.",), usage=USAGE)


def ignored(frame: object) -> None:
    pass


def test_calls_of_a_loop_share_their_connections(wire: Wire) -> None:
    wire.vendor.answers += [DONE] * 5

    async def five() -> None:
        provider = wire.provider()
        for _ in range(5):
            await provider.stream(request(), ignored)

    asyncio.run(five())
    assert (len(wire.vendor.seen), wire.vendor.connections) == (5, 1)


def test_calls_at_once_do_not_wait_for_each_other(wire: Wire) -> None:
    wire.vendor.answers += [DONE] * 8

    async def eight() -> list[str]:
        provider = wire.provider()
        replies = await asyncio.gather(*(provider.stream(request(), ignored) for _ in range(8)))
        return [reply.text for reply in replies]

    assert asyncio.run(eight()) == ["Sent."] * 8


@pytest.mark.parametrize("how", ["asyncio.run", "async_to_sync"])
def test_a_loop_that_ends_closes_its_connections(wire: Wire, how: str) -> None:
    provider = wire.provider()
    run = asyncio.run if how == "asyncio.run" else _through_asgiref
    for _ in range(3):
        wire.vendor.answers.append(DONE)
        run(provider.stream(request(), ignored))
        assert wire.vendor.all_closed()
    assert wire.vendor.connections == 3


def test_a_forgotten_provider_closes_its_connections(wire: Wire) -> None:
    wire.vendor.answers += [DONE] * 3

    async def forgetful() -> bool:
        for _ in range(3):
            await wire.provider().stream(request(), ignored)
        gc.collect()
        return await asyncio.to_thread(wire.vendor.all_closed)

    assert asyncio.run(forgetful())


def test_a_closed_provider_opens_again(wire: Wire) -> None:
    wire.vendor.answers += [DONE] * 2

    async def twice() -> None:
        provider = wire.provider()
        await provider.stream(request(), ignored)
        await provider.aclose()
        assert await asyncio.to_thread(wire.vendor.all_closed)
        await provider.stream(request(), ignored)

    asyncio.run(twice())
    assert wire.vendor.connections == 2


def test_many_models_of_one_vendor_share_a_client(chat: Wire) -> None:
    chat.vendor.answers += [DONE] * 100

    async def hundred() -> None:
        provider = chat.provider()
        for number in range(100):
            await provider.stream(request(model=f"model-{number}"), ignored)

    asyncio.run(hundred())
    assert chat.vendor.connections == 1


def _through_asgiref(coroutine: object) -> None:
    async def call() -> None:
        await coroutine  # type: ignore[misc]

    async_to_sync(call)()
