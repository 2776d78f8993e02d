"""Runs, their journal, and their frames."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, MultipleResults, initialize, multiple, rule

from agent.domain.actor import Actor
from agent.domain.commands import Effect, NewRun, RunEnd, RunStart
from agent.domain.runs import RunLease, Step
from agent.domain.snapshots import Json
from agent.testing.contracts.store import START
from tests.store.twins.machine import ACTORS, Twins, actors, calls, good_names, json_values, limits, names, runs, texts

ALL_RUNS = [f"run-{number}" for number in range(4)]
positions = st.integers(0, 6)
ends = st.sampled_from(["completed", "completed", "failed", "cancelled", "waiting"])
frames = st.sampled_from([None, '{"kind":"text"}\n', "a\x00b"])
attempts = st.sampled_from([None, 0, 1, 2])


class Working(Twins):
    leases = Bundle("leases")

    @initialize(target=leases)
    def two_runs(self) -> MultipleResults[RunLease]:
        """One run that is worked on, and one that waits for its first worker."""
        for run in ALL_RUNS[:2]:
            new = NewRun(id=run, thread_id=f"thread of {run}", actor=ACTORS[0], input={})
            self.both(lambda store, new=new: store.create_run(new))  # type: ignore[misc]
        return multiple(self.both(lambda store: store.claim_run("run-0", "w1", 60)))

    @rule(
        run=runs,
        thread=Twins.threads,
        actor=actors,
        value=json_values,
        parent=st.none() | runs,
        call=st.none() | calls,
        dispatched=st.booleans(),
        agent=names,
        first=st.booleans(),
    )
    def create_run(
        self,
        run: str,
        thread: str,
        actor: Actor,
        value: Json,
        parent: str | None,
        call: str | None,
        dispatched: bool,
        agent: str | None,
        first: bool,
    ) -> None:
        new = NewRun(
            id=run,
            thread_id=thread,
            actor=actor,
            input={"value": value},
            agent_name=agent,
            parent_run_id=parent,
            parent_call_id=call,
            dispatched=dispatched,
        )
        self.both(lambda store: store.create_run(new, ("persist:user", value) if first else None))

    @rule(target=leases, run=runs, owner=st.sampled_from(["w1", "w2"]), seconds=st.sampled_from([30, 60]))
    def claim(self, run: str, owner: str, seconds: int) -> RunLease | MultipleResults[RunLease]:
        lease = self.both(lambda store: store.claim_run(run, owner, seconds))
        return lease if isinstance(lease, RunLease) else multiple()

    @rule(lease=leases)
    def renew(self, lease: RunLease) -> None:
        self.both(lambda store: store.renew_run(lease))

    @rule(lease=leases, asked=st.lists(calls, max_size=2, unique=True))
    def park(self, lease: RunLease, asked: list[str]) -> None:
        self.both(lambda store: store.park_run(lease, asked))

    @rule(lease=leases)
    def release(self, lease: RunLease) -> None:
        self.both(lambda store: store.release_run(lease))

    @rule(run=runs)
    def wake(self, run: str) -> None:
        self.both(lambda store: store.wake_run(run))
        self.both(lambda store: store.lock_run(run))
        self.both(lambda store: store.open_children(run))

    @rule(age=st.sampled_from([0, 30]), undo=st.booleans())
    def purge_journals(self, age: int, undo: bool) -> None:
        self.both(lambda store: store.purge_journals(self.clock.now - timedelta(seconds=age)), undo=undo)

    @rule(run=runs)
    def cancel(self, run: str) -> None:
        self.both(lambda store: store.request_cancel(run))

    @rule(
        run=runs,
        lease=st.none() | leases,
        status=ends,
        duration=st.none() | st.integers(0, 9),
        message=st.none() | texts,
        first=positions,
        count=st.integers(0, 2),
    )
    def end(
        self,
        run: str,
        lease: RunLease | None,
        status: str,
        duration: int | None,
        message: str | None,
        first: int,
        count: int,
    ) -> None:
        ended = RunEnd(status=status, duration_ms=duration, error_code="run_failed", error_message=message)
        recorded = [Step(position=position, name="end", payload=None) for position in range(first, first + count)]
        run_id = run if lease is None else lease.run_id
        self.both(lambda store: store.record_run_end(run_id, ended, lease=lease, steps=recorded))

    @rule(run=runs, agent=names, parent=st.none() | runs, retries=st.integers(1, 2))
    def describe(self, run: str, agent: str | None, parent: str | None, retries: int) -> None:
        start = RunStart(prompt_hash="h" * 64, agent_name=agent, model_id="m", persona=None, parent_run_id=parent)
        self.both(lambda store: store.record_run_start(run, start))
        self.both(lambda store: store.bump_run_retries(run, retries))

    @rule(dispatched=st.lists(runs, max_size=2), limit=limits, patience=st.sampled_from([0, 60]))
    def recover(self, dispatched: list[str], limit: int, patience: int) -> None:
        self.both(lambda store: store.lapsed_runs(self.clock.now, limit, patience))
        self.both(lambda store: store.mark_dispatched(dispatched))

    @rule(gone=st.lists(st.sampled_from(["w1", "w2"]), max_size=1))
    def bury(self, gone: list[str]) -> None:
        self.both(lambda store: store.lease_owners())
        self.both(lambda store: store.lapse_leases(gone))

    @rule(lease=leases, position=st.sampled_from([1, 1, 2]), name=st.sampled_from(["llm:0", "llm:0", "tool:x"]))
    def begin(self, lease: RunLease, position: int, name: str) -> None:
        self.both(lambda store: store.begin_effect(lease, Effect(position=position, name=name)))

    @rule(
        lease=leases,
        first=positions,
        count=st.integers(0, 2),
        payload=json_values,
        name=st.sampled_from(["llm:0", "llm:0", "x" * 129]),
        effect=st.sampled_from([None, 1, 2]),
        agent=st.none() | good_names,
        undo=st.booleans(),
    )
    def record(
        self,
        lease: RunLease,
        first: int,
        count: int,
        payload: Json,
        name: str,
        effect: int | None,
        agent: str | None,
        undo: bool,
    ) -> None:
        steps = [Step(position=position, name=name, payload=payload) for position in range(first, first + count)]
        marker = None if effect is None else Effect(position=effect, name="llm:0")
        start = RunStart(prompt_hash="i" * 64, agent_name=agent, model_id=None, persona=None) if agent else None
        self.both(lambda store: store.record_steps(lease, steps, effect=marker, start=start), undo=undo)

    @rule(run=runs, written=st.lists(frames, max_size=3), attempt=attempts, by=st.none() | runs, undo=st.booleans())
    def write_frames(
        self, run: str, written: list[str | None], attempt: int | None, by: str | None, undo: bool
    ) -> None:
        self.both(lambda store: store.append_frames(run, written, attempt=attempt, by=by), undo=undo)

    @rule(run=runs, frame=frames, attempt=attempts, error=st.none() | st.just({"code": "run_failed"}))
    def write_frame(self, run: str, frame: str | None, attempt: int | None, error: Json) -> None:
        self.both(lambda store: store.append_frame(run, frame, error, attempt=attempt))

    @rule(run=runs, frame=st.sampled_from(["a\n", "b\n"]), error=st.none() | st.just({"code": "run_failed"}))
    def end_stream(self, run: str, frame: str, error: Json) -> None:
        self.both(lambda store: store.end_stream(run, [frame], error))

    @rule(run=runs, after=st.integers(-1, 5), limit=limits)
    def follow(self, run: str, after: int, limit: int) -> None:
        self.both(lambda store: store.read_frames(run, after, limit))
        self.both(lambda store: store.last_seq(run))

    @rule(removed=st.lists(runs, max_size=2), limit=limits, age=st.sampled_from([0, 1, 60_000]))
    def purge_frames(self, removed: list[str], limit: int, age: int) -> None:
        cutoff = int(self.clock.now.timestamp() * 1000) - age
        self.both(lambda store: store.lapsed_streams(cutoff, limit))
        self.both(lambda store: store.remove_frames(removed))

    def compare_everything(self) -> None:
        for run in ALL_RUNS:
            self.both(lambda store, key=run: store.open_run(key))  # type: ignore[misc]
            self.both(lambda store, key=run: store.get_run(key))  # type: ignore[misc]
            self.both(lambda store, key=run: store.run_scope(key))  # type: ignore[misc]
            self.both(lambda store, key=run: store.read_frames(key, 0))  # type: ignore[misc]
            self.both(lambda store, key=run: store.has_frames(key))  # type: ignore[misc]
        self.both(lambda store: store.lapsed_runs(self.clock.now, 100, 0))
        self.both(lambda store: store.unended_streams(START, self.clock.now + timedelta(seconds=1), 100))
        super().compare_everything()
