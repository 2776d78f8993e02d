"""The promise of the store about work and money: runs, journal, frames, ledger, keys. One Protocol a capability."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, tzinfo
from typing import Any, Protocol

from agent.domain.actor import Owner
from agent.domain.commands import (
    Effect,
    NewPrice,
    NewRun,
    RecordUsage,
    RunEnd,
    RunStart,
)
from agent.domain.ledger import ModelPrice, UsageEntry, UsageTotals
from agent.domain.runs import OpenRun, Run, RunLease, RunScope, RunState, Step
from agent.domain.snapshots import (
    IdempotencyOutcome,
    Json,
    NumberedFrame,
)


class LedgerStore(Protocol):
    """Capability `ledger`: append-only usage rows and dated prices. Money is integer nano-USD."""

    def record_usage(self, usage: RecordUsage) -> UsageEntry: ...
    def usage_between(self, actor_ref: str, start: datetime, end: datetime) -> UsageTotals: ...
    def quota_today(self, actor_ref: str, day: date, tz: tzinfo) -> UsageTotals: ...
    def price_in_force(self, model_id: str, at: datetime) -> ModelPrice | None: ...
    def list_current_prices(self) -> list[ModelPrice]: ...
    def price_history(self, model_id: str) -> list[ModelPrice]: ...
    def supersede_price(self, price: NewPrice) -> ModelPrice: ...
    def seed_prices(self, prices: Iterable[NewPrice]) -> int: ...
    def delete_price(self, price_id: str) -> bool: ...
    def unpriced_usage(self, start: datetime, end: datetime, limit: int) -> list[UsageEntry]: ...
    def reprice_usage(self, ids: Sequence[int], include_estimated: bool = False) -> int: ...
    def usage_of_run(self, run_id: str) -> list[UsageEntry]: ...


class RunStore(Protocol):
    """Capability `runs`. A lease is the right to work on a run; every write of its holder is guarded by it."""

    def create_run(self, run: NewRun, first_step: tuple[str, Json] | None = None) -> Run: ...
    def get_run(self, run_id: str) -> Run | None: ...
    def record_run_start(self, run_id: str, start: RunStart) -> bool: ...

    def record_run_end(
        self, run_id: str, end: RunEnd, *, lease: RunLease | None = None, steps: Sequence[Step] = ()
    ) -> bool:
        """Settle once, from a non-terminal status; under a lease only by its holder. `steps` are recorded with it.

        False when the lease was lost or the run is over: nothing was written. `duration_ms` None = settled - started.
        A `completed` end of a run whose cancel was requested meanwhile is refused (False) so that the caller can
        settle it as cancelled.
        """

    def bump_run_retries(self, run_id: str, count: int = 1) -> None: ...
    def claim_run(self, run_id: str, owner: str, lease_seconds: int) -> RunLease | None: ...
    def renew_run(self, lease: RunLease) -> bool: ...
    def park_run(self, lease: RunLease, call_ids: Sequence[str]) -> bool: ...
    def release_run(self, lease: RunLease) -> bool: ...
    def wake_run(self, run_id: str) -> bool: ...

    def lock_run(self, run_id: str) -> bool:
        """Hold the run's row until the unit ends; False for an unknown run. Before those of its children."""

    def open_children(self, run_id: str) -> list[Run]:
        """The runs that this one asked for and that are not over, oldest first."""

    def request_cancel(self, run_id: str) -> str:
        """`requested`, `settle_now` (queued or waiting), `over` or `unknown`; the first time stays."""

    def lapsed_runs(self, now: datetime, limit: int, queued_for: int = 60) -> list[Run]:
        """Lost runs, oldest first: `queued`, or `running` under a lapsed lease.

        Not those that were handed over in the last `queued_for` seconds; of a lapsed lease counts what came after.
        """

    def mark_dispatched(self, run_ids: Sequence[str]) -> None: ...

    def lease_owners(self) -> list[str]:
        """Who works on runs, each once."""

    def lapse_leases(self, owners: Sequence[str]) -> int:
        """Let the leases of workers that are known to be gone lapse now; how many."""

    def owner_of_active_run(self, run_id: str) -> Owner | None: ...
    def run_scope(self, run_id: str) -> RunScope | None: ...

    def run_states(self, run_ids: Sequence[str]) -> dict[str, RunState]:
        """How far these runs are; unknown ones are left out."""

    def raise_frame_base(self, run_id: str, seq: int) -> None:
        """Let the frames of a run that is not over go on above this number, should the earlier ones be purged."""


class JournalStore(Protocol):
    """Capability `journal`."""

    def open_run(self, run_id: str) -> OpenRun | None:
        """A run with its whole journal, in one statement."""

    def steps(self, run_id: str) -> list[Step]: ...

    def begin_effect(self, lease: RunLease, effect: Effect) -> bool:
        """Set the attempt marker; True when the same marker was there already. Raises `LeaseLost`."""

    def record_step(self, lease: RunLease, step: Step) -> None: ...

    def record_steps(
        self,
        lease: RunLease,
        steps: Sequence[Step],
        *,
        effect: Effect | None = None,
        start: RunStart | None = None,
    ) -> bool:
        """Record neighbouring steps in one insert, guarded by the lease: one update, one insert.

        Clears the attempt marker or sets it to `effect`; `start` fills what the run is known to be. With steps,
        recoveries fall to 0. A taken position or another holder raises `LeaseLost`. Answers whether a cancel was
        requested (read in the same statement where the database can).
        """

    def purge_journals(self, before: datetime, limit: int = 100) -> int:
        """Remove the steps of at most `limit` runs that were settled before then; of how many. The runs stay."""


class FrameStore(Protocol):
    """Capability `frames`: numbered rows of a run's stream, from 1 without gaps."""

    def append_frame(
        self, run_id: str, frame: str | None, error: dict[str, Any] | None = None, *, attempt: int | None = None
    ) -> int: ...

    def append_frames(
        self, run_id: str, frames: Sequence[str | None], *, attempt: int | None = None, by: str | None = None
    ) -> int:
        """Append in one statement and answer the last number. A None is the terminal row of a run that did not fail.

        With `attempt`, refused (`LeaseLost`) once the attempt of the run that speaks is a newer one; `by` names one
        that speaks in this run's stream.
        """

    def read_frames(self, run_id: str, after: int, limit: int = 500) -> list[NumberedFrame]: ...

    def read_streams(self, positions: Mapping[str, int], limit: int = 500) -> dict[str, list[NumberedFrame]]:
        """The rows above a number of each run, in few statements; at most `limit` in all, the first runs' first."""

    def has_frames(self, run_id: str) -> bool: ...
    def remove_frames(self, run_ids: Sequence[str]) -> int: ...
    def lapsed_streams(self, cutoff_ms: int, limit: int = 200) -> list[str]: ...
    def last_seq(self, run_id: str) -> int: ...

    def end_stream(self, run_id: str, frames: Sequence[str], error: dict[str, Any] | None = None) -> bool:
        """Append last frames and the terminal row, unless the stream has one; one of several at once does it."""

    def unended_streams(self, since: datetime, until: datetime, limit: int) -> list[str]:
        """Runs settled in [since, until) whose stream has frames and no terminal row, oldest first."""


class IdempotencyStore(Protocol):
    """Capability `idempotency`."""

    def claim_idempotency_key(self, actor_ref: str, key: str, fingerprint: str) -> IdempotencyOutcome | None: ...

    def save_idempotency_outcome(
        self,
        actor_ref: str,
        key: str,
        *,
        thread_id: str | None,
        run_id: str | None,
        message_id: str | None,
        outcome: dict[str, Any],
    ) -> None: ...

    def find_idempotency_key(self, actor_ref: str, key: str) -> IdempotencyOutcome | None: ...
    def purge_idempotency_keys(self, before: datetime) -> int: ...


class AttachmentReferenceStore(Protocol):
    """Capability `attachment_references`."""

    def referenced_media_ids(self, actor_ref: str, ids: Sequence[str]) -> list[str]:
        """Which of them a message of this actor's threads, deleted ones too, or a waiting message carries.

        Each once, in asked order; derived from the rows on every call.
        """
