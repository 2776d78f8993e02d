"""Months of conversations: weekday patterns, growth, failures, unpriced calls, a price that changed."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TypeVar

from agent.domain.pricing import row_cost
from agent.models import Message, ModelPrice, Run, Thread, ToolCall, UsageEntry
from governance.sample.cast import (
    AGENTS,
    CENT,
    ERRORS,
    MODELS,
    MOST_RUNS,
    OPEN_FOR,
    OPEN_FROM,
    PEOPLE,
    PURPOSES,
    SUBJECTS,
    TENANTS,
    TOOLS,
    WEEKDAYS,
    SampleModel,
)
from governance.sample.writing import Writer

T = TypeVar("T")

LONGEST_TALK = timedelta(minutes=40)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """How much of it, from which seed, and up to which day."""

    rows: int
    seed: int
    days: int
    last: date
    until: datetime | None = None  # nothing happens later: today is not over


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A conversation with its people and its habits."""

    thread: Thread
    agent_name: str | None
    model: SampleModel
    start: datetime


def make(sample: Sample) -> dict[str, int]:
    """Write the sample; how many rows of each table. Existing rows stay."""
    writer = Writer()
    _Maker(sample, writer).run()
    return writer.close()


class _Maker:
    def __init__(self, sample: Sample, writer: Writer) -> None:
        self._sample, self._writer = sample, writer
        self._random = random.Random(sample.seed)  # noqa: S311  (a sample, no secret)
        self._first = sample.last - timedelta(days=sample.days - 1)
        self._runs = max(1, min(sample.rows // 3, MOST_RUNS))
        self._left = sample.rows
        self._prices = {model.name: list(self._prices_of(model)) for model in MODELS}
        self._people: list[tuple[str, str | None]] = [
            (f"person-{number}", self._one_of(TENANTS)) for number in range(1, PEOPLE + 1)
        ]

    def run(self) -> None:
        for prices in self._prices.values():
            self._writer.add_missing(prices)
        done = 0
        for number, day in enumerate(self._days()):
            until = round(self._runs * self._share[number])
            while done < until:
                talk = self._talk(day)
                for turn in range(min(self._random.choice((1, 1, 2, 3, 5)), until - done)):
                    done += 1
                    self._turn(talk, turn, runs_left=self._runs - done)
                self._writer.flush_when_full()
        self._writer.flush()

    def _days(self) -> Iterator[date]:
        """The days of the sample; `_share` is how much of it has happened by the end of each."""
        days = [self._first + timedelta(days=number) for number in range(self._sample.days)]
        weights = [
            WEEKDAYS[day.weekday()] * (1 + number / self._sample.days) * self._random.uniform(0.85, 1.15)
            for number, day in enumerate(days)
        ]
        whole, so_far = sum(weights), 0.0
        self._share: list[float] = []
        for weight in weights:
            so_far += weight
            self._share.append(so_far / whole)
        self._share[-1] = 1.0
        return iter(days)

    def _talk(self, day: date) -> Talk:
        actor_ref, tenant_ref = self._people[min(int(self._random.expovariate(1 / 60)), PEOPLE - 1)]
        start = datetime.combine(day, time.min, UTC) + OPEN_FROM + OPEN_FOR * self._random.betavariate(2.2, 2.6)
        if self._sample.until is not None:
            start = min(start, self._sample.until - LONGEST_TALK)
        thread = Thread(
            id=self._id(start),
            actor_ref=actor_ref,
            tenant_ref=tenant_ref,
            title=f"{self._random.choice(SUBJECTS)} {self._random.randint(1000, 9999)}",
            created_at=start,
            updated_at=start,
            deleted_at=start + timedelta(hours=1) if self._random.random() < 0.01 else None,
        )
        self._writer.add(thread)
        model = self._random.choices(MODELS, [each.weight for each in MODELS])[0]
        return Talk(thread=thread, agent_name=self._one_of(AGENTS), model=model, start=start)

    def _turn(self, talk: Talk, turn: int, *, runs_left: int) -> None:
        at = talk.start + timedelta(minutes=4 * turn, seconds=self._random.randint(0, 90))
        status = self._random.choices(("completed", "failed", "cancelled"), (94, 4, 2))[0]
        duration = int(self._random.lognormvariate(8.4, 0.9))
        run = self._run(talk, at, status, duration)
        asked, answer = self._messages(talk, turn, run)
        calls = self._left if not runs_left else max(1, min(round(self._left / (runs_left + 1)), self._left))
        for number in range(calls):
            self._usage(talk, run, answer.id, number, at + timedelta(milliseconds=duration * number / calls))
        self._left -= calls
        if self._random.random() < 0.75:
            self._call(talk, run, answer)
        talk.thread.updated_at = max(talk.thread.updated_at, asked.created_at)
        self._writer.add(asked, answer, run)

    def _run(self, talk: Talk, at: datetime, status: str, duration: int) -> Run:
        failed = status == "failed"
        run_id = self._id(at)
        return Run(
            id=run_id,
            thread_id=talk.thread.pk,
            actor_ref=talk.thread.actor_ref,
            tenant_ref=talk.thread.tenant_ref,
            actor={"ref": talk.thread.actor_ref, "roles": [], "tenantRef": talk.thread.tenant_ref},
            agent_name=talk.agent_name,
            model_id=talk.model.name,
            status=status,
            trigger="send",
            input={},
            stream_run_id=run_id,
            attempt=1,
            prompt_hash=f"{hash_of(talk.agent_name, at):064x}",
            retries=self._random.choices((0, 1, 2), (95, 4, 1))[0],
            created_at=at,
            started_at=at,
            settled_at=at + timedelta(milliseconds=duration),
            duration_ms=duration,
            active_ms=duration,
            error_code=self._one_of(ERRORS) if failed else None,
            error_message="The model could not be reached." if failed else None,
        )

    def _messages(self, talk: Talk, turn: int, run: Run) -> tuple[Message, Message]:
        """The question and the answer of a turn."""
        talk.thread.last_seq += 2
        common = {"thread_id": talk.thread.pk, "run_id": run.pk, "agent_name": talk.agent_name}
        asked = Message(
            id=self._id(run.created_at),
            seq=talk.thread.last_seq - 1,
            role="user",
            content=f"{talk.thread.title}: question {turn + 1}",
            created_at=run.created_at,
            **common,
        )
        answer = Message(
            id=self._id(run.created_at),
            seq=talk.thread.last_seq,
            role="assistant",
            content="Here is what I found.",
            created_at=run.settled_at or run.created_at,
            **common,
        )
        return asked, answer

    def _usage(self, talk: Talk, run: Run, message_id: str, number: int, at: datetime) -> None:
        model = talk.model
        read = int(self._random.lognormvariate(7.2, 0.8)) if model.prices and model.prices[3] else None
        written = self._random.randint(0, 900) if read is not None and number == 0 else None
        entry = UsageEntry(
            thread_id=talk.thread.pk,
            run_id=run.pk,
            message_id=message_id,
            actor_ref=run.actor_ref,
            tenant_ref=run.tenant_ref,
            agent_name=run.agent_name,
            model_id=model.name,
            purpose=self._one_of(PURPOSES),
            step_key=f"llm:{number}",
            input_tokens=int(self._random.lognormvariate(6.6, 0.7)) + (read or 0) + (written or 0),
            output_tokens=int(self._random.lognormvariate(5.2, 0.8)),
            cache_write_tokens=written,
            cache_read_tokens=read,
            tokens_source="reported",
            created_at=at,
        )
        price = next((each for each in reversed(self._prices[model.name]) if each.effective_from <= at), None)
        reported = self._random.randint(10_000, 4_000_000) if model.reports else None
        cost = row_cost(price, entry, reported=reported)  # type: ignore[arg-type]  # a row has what a value has
        entry.reported_cost_nanos, entry.cost_nanos = cost.reported_cost_nanos, cost.cost_nanos
        entry.estimated_cost_nanos, entry.price_id = cost.estimated_cost_nanos, cost.price_id
        self._writer.add(entry)

    def _call(self, talk: Talk, run: Run, answer: Message) -> None:
        name, kind, _ = self._random.choices(TOOLS, [tool[2] for tool in TOOLS])[0]
        done = "auto_executed" if kind == "read" else "executed"
        status = self._random.choices((done, "failed", "rejected", "expired"), (92, 4, 3 * (kind == "action"), 1))[0]
        took = int(self._random.lognormvariate(5, 1)) if status in {done, "failed"} else None
        settled = run.created_at + timedelta(milliseconds=took or 1000)
        decided = kind == "action" and status != "expired"
        call = ToolCall(
            id=self._id(run.created_at),
            provider_call_id="call-1",
            message_id=answer.pk,
            thread_id=talk.thread.pk,
            run_id=run.pk,
            actor_ref=run.actor_ref,
            tenant_ref=run.tenant_ref,
            agent_name=run.agent_name,
            tool_name=name,
            tool_type=kind,
            input={"order": self._random.randint(1000, 9999)},
            status=status,
            decision=("rejected" if status == "rejected" else "approved") if decided else None,
            decided_at=settled if decided else None,
            decided_via="web" if decided else None,
            executed_by_ref=run.actor_ref,
            approver="requester" if kind == "action" else None,
            execution_ms=took,
            error="The order could not be read." if status == "failed" else None,
            created_at=run.created_at,
            executed_at=settled if status == done else None,
            settled_at=settled,
        )
        self._writer.add(call)

    def _prices_of(self, model: SampleModel) -> Iterator[ModelPrice]:
        start = datetime.combine(self._first, time.min, UTC) - timedelta(days=1)
        yield from (
            price
            for since, share in ((start, 100), (start + timedelta(days=self._sample.days // 2), 80))
            if (price := self._price(model, since, share)) is not None and (share == 100 or model.cheaper)
        )

    def _price(self, model: SampleModel, since: datetime, share: int) -> ModelPrice | None:
        if model.prices is None:
            return None
        plain, output, write, read = model.prices
        return ModelPrice(
            id=str(uuid.uuid5(uuid.NAMESPACE_OID, f"{model.name} {since.isoformat()}")),
            model_id=model.name,
            input_per_million_nanos=plain * CENT * share // 100,
            output_per_million_nanos=output * CENT * share // 100,
            cache_write_per_million_nanos=None if write is None else write * CENT * share // 100,
            cache_read_per_million_nanos=None if read is None else read * CENT * share // 100,
            effective_from=since,
            source="sample",
            created_at=since,
        )

    def _id(self, at: datetime) -> str:
        """An id of this instant, as the agent makes them, and the same for the same seed."""
        number = int(at.timestamp() * 1000) << 80 | self._random.getrandbits(80)
        return str(uuid.UUID(int=(number & ~(0xF << 76 | 0b11 << 62)) | 0x7 << 76 | 0b10 << 62))

    def _one_of(self, weighted: Mapping[T, int]) -> T:
        return self._random.choices(list(weighted), list(weighted.values()))[0]


def hash_of(agent_name: str | None, at: datetime) -> int:
    """A prompt's number: an agent has a new one every other month."""
    seed = f"{agent_name} {at.year} {at.month // 2}"
    return uuid.uuid5(uuid.NAMESPACE_OID, seed).int
