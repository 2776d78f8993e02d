"""A plain turn with one read tool, as units of work of the store: what the budget is counted on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection
from django.test.utils import CaptureQueriesContext

from agent.domain.actor import Actor
from agent.domain.commands import (
    AppendMessage,
    Effect,
    NewPrice,
    NewRun,
    RecordToolCall,
    RecordUsage,
    RunEnd,
    RunStart,
    ToolCallPatch,
)
from agent.domain.runs import RunLease, Step
from agent.store import AgentStore

ANA = Actor("ana", ("user",), "acme")
PRICE = NewPrice(model_id="m", input_per_million_nanos=3 * 10**9, output_per_million_nanos=15 * 10**9)
BOUNDARIES = ("BEGIN", "SAVEPOINT", "RELEASE", "START TRANSACTION")


@dataclass
class Spent:
    """What one unit of work sent to the database."""

    statements: int = 0
    commits: int = 0


@contextmanager
def spending() -> Iterator[Spent]:
    spent = Spent()
    with CaptureQueriesContext(connection) as captured:
        yield spent
    sent = [query["sql"].upper() for query in captured.captured_queries]
    spent.commits = sum(text.startswith("COMMIT") for text in sent)
    spent.statements = sum(not text.startswith((*BOUNDARIES, "COMMIT")) for text in sent)


@dataclass
class Turn:
    """The six units, each a method that has to be called in order."""

    store: AgentStore
    run_id: str
    thread_id: str = ""
    message_id: str = ""
    lease: RunLease | None = None

    def admit(self) -> None:
        asked = AppendMessage(thread_id=self.thread_id, role="user", content="where is order 1042?", run_id=self.run_id)
        with self.store.atomic():
            if not self.thread_id:
                thread = self.store.create_thread(actor=ANA, active_run_id=self.run_id, first_message=asked)
                self.thread_id = thread.id
            else:
                assert self.store.claim_active_run(self.thread_id, self.run_id)
                self.store.append_message(asked)
            run = NewRun(id=self.run_id, thread_id=self.thread_id, actor=ANA, input={}, dispatched=True)
            self.store.create_run(run, ("persist:user", {"id": "m"}))

    def start(self) -> None:
        steps = [Step(position=place, name=f"step:{place}", payload={"at": place}) for place in range(1, 5)]
        resolved = RunStart(prompt_hash="0" * 64, agent_name="desk", model_id="m", persona=None)
        with self.store.atomic():
            self.lease = self.store.claim_run(self.run_id, "host:1:a", 60)
            assert self.lease is not None
            assert self.store.open_run(self.run_id) is not None
            assert self.store.load_thread_for_turn(self.thread_id, message_limit=20) is not None
            self.store.record_steps(self.lease, steps, effect=Effect(position=5, name="llm:0"), start=resolved)

    def ask_for_a_tool(self) -> None:
        asked = [{"id": self.call_id, "name": "order", "input": {"id": 1042}}]
        with self.store.atomic():
            self._spend("llm:0")
            message = AppendMessage(thread_id=self.thread_id, role="assistant", content="", tool_calls=asked)
            self.message_id = self.store.append_message(message).id
            self.store.record_tool_call(self.call())
            self._record(5, 6, effect=Effect(position=7, name="tool"))

    def settle_the_tool(self) -> None:
        with self.store.atomic():
            self._record(7, 8, effect=Effect(position=9, name="llm:1"))
            done = ToolCallPatch(status="auto_executed", output={"status": "shipped"}, execution_ms=3)
            assert self.store.update_tool_call(self.call_id, done)
            self.store.set_message_tool_results(self.message_id, [{"id": self.call_id, "output": "shipped"}])

    def answer(self) -> None:
        with self.store.atomic():
            self._spend("llm:1")
            said = AppendMessage(thread_id=self.thread_id, role="assistant", content="It is shipped.")
            self.store.append_message(said)
            self._record(9)

    def end(self) -> None:
        ended = [Step(position=10, name="persist:run:end", payload={"outcome": "completed"})]
        with self.store.atomic():
            assert self.store.release_active_run(self.thread_id, self.run_id, title="Order 1042")
            assert self.store.record_run_end(self.run_id, RunEnd(status="completed"), lease=self.lease, steps=ended)

    @property
    def call_id(self) -> str:
        return f"{self.run_id}-call"

    def call(self) -> RecordToolCall:
        return RecordToolCall(
            id=self.call_id,
            provider_call_id="call_0",
            message_id=self.message_id,
            thread_id=self.thread_id,
            run_id=self.run_id,
            actor_ref=ANA.ref,
            tenant_ref=ANA.tenant_ref,
            agent_name="desk",
            tool_name="order",
            tool_type="read",
            input={"id": 1042},
            status="running",
        )

    def _spend(self, step_key: str) -> None:
        usage = RecordUsage(
            thread_id=self.thread_id,
            actor_ref=ANA.ref,
            model_id="m",
            purpose="chat",
            run_id=self.run_id,
            step_key=step_key,
            input_tokens=1000,
            output_tokens=200,
        )
        assert self.store.record_usage(usage).cost_nanos == 6_000_000

    def _record(self, *positions: int, effect: Effect | None = None) -> None:
        assert self.lease is not None
        steps = [Step(position=place, name=f"step:{place}", payload=None) for place in positions]
        self.store.record_steps(self.lease, steps, effect=effect)
