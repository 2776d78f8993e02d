"""Driving a run: take the lease, keep it alive, run the loop, and settle what the loop did not (spec 03 §7-8)."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace

from django.db import InterfaceError, OperationalError

from agent.conf import agent_settings
from agent.domain.redaction import redacted_trace
from agent.domain.runs import Run
from agent.errors import Cancelled, GivenUp, LeaseLost, NotFound, Parked
from agent.flows.driver import Driver
from agent.flows.loop import Turn
from agent.flows.owners import this_process
from agent.flows.settlement import (
    Leftovers,
    Settled,
    close_stream,
    hand_back,
    settle_cancelled,
    settle_failed,
)
from agent.flows.takeover import count_crash, shown_of, take_over
from agent.sinks import get_sink
from agent.sinks.writer import Aside, FrameWriter
from agent.store import get_store, in_store

DATABASE_GONE = (OperationalError, InterfaceError)

logger = logging.getLogger("agent.runner")


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
            lease = store.claim_run(driver.run_id, this_process(), seconds)
            if lease is None:
                return None
            turn = Turn(store, lease, driver)
            if lease.attempt > 1:
                turn.untold = take_over(store, turn.opened)
            if turn.run.recoveries > agent_settings().run_max_recoveries:
                turn.broken = GivenUp()
            else:
                turn.begin()
            return turn
    except DATABASE_GONE:
        logger.exception("run %s could not be begun; recovery will", driver.run_id)
        return None
    except Exception as error:
        logger.error("run %s failed: %s", driver.run_id, redacted_trace(error))  # noqa: TRY400 - without its secrets
        broken = error
    _settle_unbegun(driver.run_id, broken)
    return None


def _settle_unbegun(run_id: str, error: Exception) -> None:
    """Settle a run that could not even be begun; its first claim was rolled back with its steps."""
    store = get_store()
    lease = store.claim_run(run_id, this_process(), agent_settings().run_lease_seconds)
    opened = None if lease is None else store.open_run(run_id)
    if opened is None:
        return
    if opened.run.attempt > 1:  # the call that its last worker was in is counted all the same
        count_crash(store, opened.run, opened.steps, seen=shown_of(opened.run), attempt=opened.run.attempt - 1)
    if _thread_is_gone(opened.run, error):
        settled = settle_cancelled(opened.run, lease=lease)
    else:
        settled = settle_failed(opened.run, error, lease=lease, left=Leftovers())
    if settled is not None:
        close_stream(opened.run, settled)


def _thread_is_gone(run: Run, error: Exception) -> bool:
    """Whether the run ends because its conversation was deleted, which is a stop and no failure."""
    if not isinstance(error, NotFound):
        return False
    scope = get_store().thread_scope(run.thread_id)
    return scope is None or scope.deleted


async def _run(driver: Driver, turn: Turn) -> None:
    try:
        writer = turn.writer = _opened(turn)
    except Exception as error:  # its options are wrong: nobody will ever see this run, and nobody may wait for it
        logger.exception("the stream of run %s could not be opened", turn.run.id)
        await in_store(settle_failed, turn.run, error, lease=turn.lease, left=Leftovers())
        return
    try:
        await _settled(driver, turn, writer)
    finally:
        writer.abandon()


def _opened(turn: Turn) -> FrameWriter:
    """The writer of the run's own stream, or of its part in the stream of the run that awaits it."""
    run, attempt = turn.run, turn.lease.attempt
    if run.is_delegate and run.parent_call_id is not None:
        return get_sink().open(run.stream_run_id, attempt, Aside(run.id, run.parent_call_id))
    return get_sink().open(run.id, attempt)


async def _settled(driver: Driver, turn: Turn, writer: FrameWriter) -> None:
    """Play the turn to its end, whatever that is, and close its stream."""
    try:
        for frame in turn.untold:
            writer.write(frame)
        await turn.play()
        await writer.end()
    except Cancelled:
        await _stopped(turn, writer)
    except Parked:
        logger.info("run %s waits", turn.run.id)
    except LeaseLost:
        driver.released = driver.leaving and await in_store(_hand_back, driver, turn)
        logger.info("run %s %s", turn.run.id, "was released" if driver.released else "is another worker's now")
    except DATABASE_GONE:
        # As if the process had died: whoever takes the run over counts it, so that it does not go round for ever.
        logger.exception("run %s lost its database", turn.run.id)
        driver.released = await in_store(_let_lapse, turn)
    except Exception as error:
        if await in_store(_thread_is_gone, turn.run, error):
            await _stopped(turn, writer)
            return
        logger.error("run %s failed: %s", turn.run.id, redacted_trace(error))  # noqa: TRY400 - without its secrets
        await _close(writer, await in_store(settle_failed, turn.run, error, lease=turn.lease, left=turn.leftovers()))


async def _close(writer: FrameWriter, settled: Settled | None) -> None:
    """Tell the end of a run that was settled here."""
    if settled is None:
        return
    for frame in settled.frames:
        writer.write(frame)
    await (writer.end() if settled.error is None else writer.fail(settled.error))


async def _stopped(turn: Turn, writer: FrameWriter) -> None:
    await _close(writer, await in_store(settle_cancelled, turn.run, lease=turn.lease, left=turn.leftovers()))


def _hand_back(driver: Driver, turn: Turn) -> bool:
    left = turn.leftovers()
    return hand_back(turn.run, turn.lease, left, touched=driver.broke_off or bool(left.usage))


def _let_lapse(turn: Turn) -> bool:
    return turn.store.renew_run(replace(turn.lease, seconds=0))


async def _heartbeat(driver: Driver, turn: Turn) -> None:
    """Renew the lease each third of it, and look whether another process asked the run to stop."""
    renewed = time.monotonic()
    while True:
        await asyncio.sleep(turn.lease.seconds / 3)
        try:
            alive, cancel_requested = await in_store(_renew, turn)
            renewed = time.monotonic()
        except Exception:
            logger.exception("the lease of run %s could not be renewed", turn.run.id)
            alive, cancel_requested = time.monotonic() - renewed < turn.lease.seconds, False
        if not alive:
            driver.lose()
        elif cancel_requested:
            driver.cancel()


def _renew(turn: Turn) -> tuple[bool, bool]:
    alive = turn.store.renew_run(turn.lease)
    run = turn.store.get_run(turn.run.id) if alive else None
    return alive, run is not None and run.cancel_requested_at is not None
