"""What happens, as Django signals: sent after the commit that makes it true, in counts and ids, never in words.

A receiver is a plain function of `(sender, event, **kwargs)`. It runs on the thread on which the event arose, before
that thread does anything else: hand on what takes time. What it raises is logged and changes nothing. Signals are of
this process alone; between processes the same events travel over the channel layer (`agent.sinks.broadcast`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.dispatch import Signal

from agent.domain.clock import wire_time

log = logging.getLogger("agent.signals")

Fact = str | int | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened; `payload` holds ids, words of our own and counts."""

    event: str
    ts: datetime
    payload: Mapping[str, Fact]

    def to_wire(self) -> dict[str, Any]:
        return {"event": self.event, "ts": wire_time(self.ts), "payload": dict(self.payload)}


run_started = Signal()
message = Signal()
tool_call = Signal()
tool_retry = Signal()
delegated = Signal()
approval_requested = Signal()
approval_decided = Signal()
quota_exceeded = Signal()
run_failed = Signal()
run_finished = Signal()
happened = Signal()  # every one of them

SIGNALS: Final[Mapping[str, Signal]] = {
    "run.started": run_started,
    "message": message,
    "tool-call": tool_call,
    "tool.retry": tool_retry,
    "delegated": delegated,
    "approval.requested": approval_requested,
    "approval.decided": approval_decided,
    "quota.exceeded": quota_exceeded,
    "run.failed": run_failed,
    "run.finished": run_finished,
}


def send(event: Event) -> None:
    """Call the receivers of the event and those of all events, whatever they raise."""
    for signal in (SIGNALS[event.event], happened):
        if signal.receivers:
            try:
                signal.send_robust(sender=Event, event=event)  # which logs what a receiver raises
            except (Exception, SystemExit):  # one that is async where a loop runs, or that wants the process to end
                log.exception("a receiver of %s could not be called", event.event)
