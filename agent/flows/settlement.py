"""Ending a run that did not complete: one transaction, fenced by the worker's lease when there is one (03 §7)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from agent.domain import frames
from agent.domain.commands import RecordUsage, RunEnd
from agent.domain.model_calls import Frame
from agent.domain.runs import Run, RunLease
from agent.domain.states import RunStatus
from agent.domain.text import is_blank
from agent.domain.titles import title_for, wants_title
from agent.errors import GivenUp, LeaseLost, NotFound, OverQuota
from agent.flows import events
from agent.flows.answers import plain_message
from agent.flows.failures import code_of, raw_text, shown_error
from agent.flows.families import broken_off, hold
from agent.flows.handing import hand_on
from agent.flows.pages import title_of
from agent.sinks import get_sink
from agent.store import get_store
from agent.store.base import AgentStore

logger = logging.getLogger("agent.settlement")

STOPPED = "The answer was stopped before this call completed."
FAILED = "The answer failed before this call completed."


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftovers:
    """What an unfinished model call leaves to be recorded: its ledger rows, and the text that was shown.

    `work` is what was recorded before it; None where nobody has it in hand.
    """

    usage: Sequence[RecordUsage] = ()
    retries: int = 0
    text: str = ""
    work: events.Work | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A run that was settled here: the last frames of its stream, and the `error` that ends it instead of `done`."""

    frames: tuple[Frame, ...] = ()
    error: dict[str, Any] | None = None


def settle_cancelled(run: Run, *, lease: RunLease | None = None, left: Leftovers | None = None) -> Settled | None:
    """Settle as cancelled; None when the run is over already. Text that was shown stays in the thread."""
    queue = _settle(run, RunEnd(status=RunStatus.CANCELLED), lease, left or Leftovers())
    return None if queue is None else Settled(frames=() if run.is_delegate else (*queue, frames.cancelled()))


def settle_failed(run: Run, error: BaseException, *, lease: RunLease | None = None, left: Leftovers) -> Settled | None:
    """Settle as failed with the code of the error and its raw text; None when the run is over already."""
    end, shown = _failure(error), shown_error(error)
    try:
        queue = _settle(run, end, lease, replace(left, text=""), message=shown["message"])
    except Exception:
        if not left.usage:
            raise
        # what cannot be entered must not keep the run open: it would be made, and paid, again and again
        logger.exception("the leftovers of run %s could not be recorded", run.id)
        queue = _settle(run, end, lease, Leftovers(work=left.work), message=shown["message"])
    if queue is None:
        return None
    if isinstance(error, OverQuota):
        events.quota_exceeded(get_store(), run.actor, error.period, thread_id=run.thread_id, run_id=run.id)
    return Settled(frames=tuple(queue), error=shown)


def bury(store: AgentStore, run: Run) -> None:
    """Settle a dead holder as failed, in the unit of whoever takes its thread over."""
    error = GivenUp()
    shown = shown_error(error)
    if _record(store, run, _failure(error), None, Leftovers(), message=shown["message"]):
        store.on_commit(partial(close_stream, run, Settled(error=shown)))


def hand_back(run: Run, lease: RunLease, left: Leftovers, *, touched: bool) -> bool:
    """Release a run that goes on elsewhere, with the ledger rows of the call that broke off; False when it is lost.

    Where nothing was `touched`, the next effect was only marked: whoever begins it does not repeat it.
    """
    store = get_store()
    try:
        with store.atomic():
            now = store.get_run(run.id)
            marked_here = now is not None and now.effect_position not in {None, run.effect_position}
            if marked_here and not touched:
                store.record_steps(lease, [])
            _spent(store, run, left)
            if not store.release_run(lease):
                raise LeaseLost
    except LeaseLost:
        return False
    return True


def close_stream(run: Run, settled: Settled) -> None:
    """Write the last frames of a run that no worker drives, then the end."""
    if run.is_delegate:
        return  # it spoke in the stream of the run that asked it, which goes on
    get_sink().finish(run.stream_run_id, [frames.encode(frame) for frame in settled.frames], settled.error)


def _failure(error: BaseException) -> RunEnd:
    return RunEnd(status=RunStatus.FAILED, error_code=code_of(error), error_message=raw_text(error))


def _settle(
    run: Run, end: RunEnd, lease: RunLease | None, left: Leftovers, *, message: str | None = None
) -> Sequence[Frame] | None:
    """Record the end and hand the thread on; the frame of its queue if that changed, None when the run is over."""
    store = get_store()
    with store.atomic():
        hold(store, run)  # rows are locked in one order: thread, run, tool call
        if not _record(store, run, end, lease, left, message=message):
            return None
        handed = hand_on(store, run, end.status, message=message, title=_title(store, run))
    return replace(handed, title=None).frames  # a title is announced with an answer; here a notice tells of it


def _title(store: AgentStore, run: Run) -> str | None:
    """What a first turn that did not complete leaves its thread listed by: the words that it was asked."""
    title = None if run.depth else title_of(store, run.thread_id)
    if title is None or not wants_title(title):
        return None
    said = store.messages_of_run(run.thread_id, run.id) or []
    asked = title_for(next((message.content for message in said if message.role == "user"), ""))
    if not wants_title(asked):
        events.thread_changed(store, run.thread_id, "title")
        return asked
    return None


def _record(
    store: AgentStore, run: Run, end: RunEnd, lease: RunLease | None, left: Leftovers, *, message: str | None
) -> bool:
    """The end of a run with what it leaves; False, and nothing written, when it is over or another worker's."""
    if not store.record_run_end(run.id, end, lease=lease):
        return False
    store.fail_unsettled_tool_calls(run.id, STOPPED if end.status == RunStatus.CANCELLED else FAILED)
    _keep(store, run, left)
    broken_off(store, run, end.status, message=message)
    _tell(store, run, end, lease, left.work)
    return True


def _spent(store: AgentStore, run: Run, left: Leftovers) -> None:
    for usage in left.usage:
        store.record_usage(usage)
    if left.retries:
        store.bump_run_retries(run.id, left.retries)


def _keep(store: AgentStore, run: Run, left: Leftovers) -> None:
    _spent(store, run, left)
    if not is_blank(left.text):
        said = plain_message(run, left.text)
        try:
            store.append_message(said)
        except NotFound:  # the conversation was deleted meanwhile, which is why the run stops
            return
        events.message_stored(store, said, actor=run.actor, thread_id=run.thread_id)


def _tell(store: AgentStore, run: Run, end: RunEnd, lease: RunLease | None, work: events.Work | None) -> None:
    done = events.Work.of(store.usage_of_run(run.id)) if work is None else work
    if end.status == RunStatus.CANCELLED:
        events.run_finished(store, run, end.status, done, lease=lease)
    else:
        events.run_failed(store, run, end.error_code, done, lease=lease)
