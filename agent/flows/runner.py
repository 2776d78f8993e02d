"""Driving a run: take the lease, keep it alive, run the loop, and settle what the loop did not (spec 03 §7-8)."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket

from agent.conf import agent_settings
from agent.domain import frames
from agent.errors import Cancelled, LeaseLost
from agent.flows.driver import Driver
from agent.flows.loop import Turn
from agent.flows.settlement import hand_back, settle_cancelled, settle_failed, shown_error
from agent.sinks import get_sink
from agent.sinks.writer import FrameWriter
from agent.store import get_store, in_store

logger = logging.getLogger("agent.runner")


def owner_name() -> str:
    """Who holds a lease: `host:pid:random`; the random part tells a re-used process id apart."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


OWNER = owner_name()


async def drive(driver: Driver) -> None:
    """Work on a run until it is settled, parked, or another's. A run that is not to be claimed is left alone."""
    turn = await in_store(_begin, driver)
    if turn is None:
        return
    beat = asyncio.get_running_loop().create_task(_heartbeat(driver, turn))
    try:
        await _run(driver, turn)
    finally:
        beat.cancel()


def _begin(driver: Driver) -> Turn | None:
    """Claim the run and record its first steps in one transaction."""
    store, seconds = get_store(), agent_settings().run_lease_seconds
    try:
        with store.atomic():
            lease = store.claim_run(driver.run_id, OWNER, seconds)
            if lease is None:
                return None
            turn = Turn(store, lease, driver)
            turn.begin()
            return turn
    except Exception as error:
        broken = error
    lease = store.claim_run(driver.run_id, OWNER, seconds)  # the first claim was rolled back with its steps
    if lease is None:
        return None
    turn = Turn(store, lease, driver)
    turn.broken = broken
    return turn


async def _run(driver: Driver, turn: Turn) -> None:
    writer = turn.writer = get_sink().open(turn.run.stream_run_id, turn.lease.attempt)
    try:
        await _settled(driver, turn, writer)
    finally:
        writer.abandon()


async def _settled(driver: Driver, turn: Turn, writer: FrameWriter) -> None:
    """Play the turn to its end, whatever that is, and close its stream."""
    try:
        await turn.play()
        await writer.end()
    except Cancelled:
        if await in_store(settle_cancelled, turn.run, lease=turn.lease, left=turn.leftovers()):
            writer.write(frames.cancelled())
            await writer.end()
    except LeaseLost:
        if driver.leaving and await in_store(hand_back, turn.run, turn.lease, turn.leftovers()):
            logger.info("run %s was released at a border", turn.run.id)
        else:
            logger.warning("run %s is another worker's now", turn.run.id)
    except Exception as error:
        logger.exception("run %s failed", turn.run.id)
        if await in_store(settle_failed, turn.run, error, lease=turn.lease, left=turn.leftovers()):
            await writer.fail(shown_error(error))


async def _heartbeat(driver: Driver, turn: Turn) -> None:
    """Renew the lease each third of it, and look whether another process asked the run to stop."""
    while True:
        await asyncio.sleep(turn.lease.seconds / 3)
        alive, cancel_requested = await in_store(_renew, turn)
        if not alive:
            driver.lose()
        elif cancel_requested:
            driver.cancel()


def _renew(turn: Turn) -> tuple[bool, bool]:
    alive = turn.store.renew_run(turn.lease)
    run = turn.store.get_run(turn.run.id) if alive else None
    return alive, run is not None and run.cancel_requested_at is not None
