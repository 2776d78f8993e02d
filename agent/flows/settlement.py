"""Ending a run that did not complete: one transaction, fenced by the worker's lease when there is one (03 §7)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent.conf import agent_settings
from agent.domain import frames
from agent.domain.commands import AppendMessage, RecordUsage, RunEnd
from agent.domain.ids import new_id
from agent.domain.redaction import redact
from agent.domain.runs import Run, RunLease
from agent.domain.states import RunStatus
from agent.errors import AgentError, LeaseLost, ModelError, ModelNoOutput, NotFound, OverQuota, ReplayDiverged
from agent.flows import events
from agent.flows.stream import GENERIC
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


def settle_cancelled(run: Run, *, lease: RunLease | None = None, left: Leftovers | None = None) -> bool:
    """Settle as cancelled; False when the run is over already. Text that was shown stays in the thread."""
    return _settle(run, RunEnd(status=RunStatus.CANCELLED), STOPPED, lease, left or Leftovers())


def settle_failed(run: Run, error: BaseException, *, lease: RunLease | None = None, left: Leftovers) -> bool:
    """Settle as failed with the code of the error and its raw text."""
    end = RunEnd(status=RunStatus.FAILED, error_code=code_of(error), error_message=raw_text(error))
    try:
        settled = _settle(run, end, FAILED, lease, replace(left, text=""))
    except Exception:
        if not left.usage:
            raise
        # what cannot be entered must not keep the run open: it would be made, and paid, again and again
        logger.exception("the leftovers of run %s could not be recorded", run.id)
        settled = _settle(run, end, FAILED, lease, Leftovers(work=left.work))
    if settled and isinstance(error, OverQuota):
        events.quota_exceeded(get_store(), run.actor, error.period, thread_id=run.thread_id, run_id=run.id)
    return settled


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


def code_of(error: BaseException) -> str:
    """The code a run fails with; whatever has none of its own is `run_failed`."""
    kept = (ModelNoOutput, OverQuota, ReplayDiverged)
    return error.code if isinstance(error, kept) else "run_failed"


def raw_text(error: BaseException) -> str:
    """What an error says, without the secrets that it may repeat."""
    return redact(f"{type(error).__name__}: {error}") if str(error) else type(error).__name__


def shown_error(error: BaseException) -> dict[str, Any]:
    """`{code, message}` for followers: our own sentence where the code has one, else generic unless exposed."""
    code = code_of(error)
    if isinstance(error, AgentError) and (code != "run_failed" or isinstance(error, ModelError)):
        return {"code": code, "message": redact(error.message)}
    return {"code": code, "message": raw_text(error) if agent_settings().expose_errors else GENERIC}


def told_error(run: Run) -> dict[str, Any]:
    """What followers of a failed run are told, from its row."""
    code, raw = run.error_code or "run_failed", run.error_message or ""
    message = raw if agent_settings().expose_errors else GENERIC
    return {"code": code, "message": message if code == "run_failed" else raw.partition(": ")[2] or GENERIC}


def close_stream(run: Run, *, error: dict[str, Any] | None = None) -> None:
    """Write the last frames of a run that no worker drives: `cancelled` unless it failed, then the end."""
    if run.stream_run_id != run.id:
        return  # it spoke in the stream of the run that asked it, which goes on
    last = () if error else (frames.encode(frames.cancelled()),)
    get_sink().finish(run.stream_run_id, last, error)


def _settle(run: Run, end: RunEnd, reason: str, lease: RunLease | None, left: Leftovers) -> bool:
    store = get_store()
    try:
        with store.atomic():
            store.release_active_run(run.thread_id, run.id)  # rows are locked in one order: thread, run, tool call
            if not store.record_run_end(run.id, end, lease=lease):
                raise LeaseLost
            store.fail_unsettled_tool_calls(run.id, reason)
            _keep(store, run, left)
            _tell(store, run, end, lease, left.work)
    except LeaseLost:
        return False
    return True


def _spent(store: AgentStore, run: Run, left: Leftovers) -> None:
    for usage in left.usage:
        store.record_usage(usage)
    if left.retries:
        store.bump_run_retries(run.id, left.retries)


def _keep(store: AgentStore, run: Run, left: Leftovers) -> None:
    _spent(store, run, left)
    if left.text.strip():
        said = AppendMessage(
            id=new_id(),
            thread_id=run.thread_id,
            role="assistant",
            content=left.text,
            agent_name=run.agent_name,
            persona=run.persona,
            run_id=run.id,
        )
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
