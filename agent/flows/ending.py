"""The end of a turn that was answered: title, thread handed on, run settled, in the unit of its last record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from agent.domain.commands import RunEnd
from agent.domain.model_calls import Frame
from agent.domain.runs import Run, RunLease
from agent.domain.states import RunStatus, RunTrigger
from agent.domain.titles import title_for, wants_title
from agent.errors import Cancelled, LeaseLost
from agent.flows import events
from agent.flows.families import answer_of, deliver, hold, wake_parent
from agent.flows.handing import Handed, hand_on
from agent.flows.journal import Journal, NotSettled, Unit
from agent.flows.recall import Recall
from agent.store.base import AgentStore

T = TypeVar("T")


class Ending:
    """The last steps of one run, from `persist:title` on; `work` tells what it has done when it is over."""

    def __init__(
        self,
        store: AgentStore,
        run: Run,
        lease: RunLease,
        journal: Journal,
        *,
        recall: Recall,
        work: Callable[[], events.Work],
    ) -> None:
        self._store, self._run, self._lease, self._journal = store, run, lease, journal
        self._recall, self._work = recall, work
        self._handed = Handed()

    @property
    def frames(self) -> Sequence[Frame]:
        """What followers are told last."""
        return self._handed.frames

    def close(self, record: Callable[[Unit], T], *, appends: bool = False) -> T:
        """A unit that settles the run too; `appends`: its message locks the thread's row.

        Asked to stop meanwhile, it records its work and raises `Cancelled`.
        """
        try:
            with self._journal.unit() as unit:
                if not appends or self._run.depth:
                    hold(self._store, self._run)
                recorded = record(unit)
                self._end(unit)
            return recorded
        except NotSettled:
            run = self._store.get_run(self._run.id)
            if run is None or run.attempt != self._lease.attempt or run.cancel_requested_at is None:
                raise LeaseLost from None
        with self._journal.unit() as unit:
            record(unit)
        raise Cancelled

    def _end(self, unit: Unit) -> None:
        title: str | None = None
        if wants_title(self._recall.title) and not self._run.depth:
            title = unit.write("persist:title", lambda: {"title": title_for(self._recall.asked)})["title"]
            events.thread_changed(self._store, self._run.thread_id, "title")
        if self._run.trigger == RunTrigger.DETACHED:
            unit.write("deliver:detached", self._deliver)
        unit.write("persist:run:end", self._hand_on, title)
        unit.end(RunEnd(status=RunStatus.COMPLETED))
        events.run_finished(self._store, self._run, RunStatus.COMPLETED, self._work(), lease=self._lease)

    def _deliver(self) -> dict[str, Any]:
        return {"messageId": deliver(self._store, self._run, answer_of(self._store, self._run))}

    def _hand_on(self, title: str | None) -> dict[str, Any]:
        self._handed = hand_on(self._store, self._run, title=title)
        wake_parent(self._store, self._run)
        return {"outcome": RunStatus.COMPLETED, **self._handed.to_json()}
