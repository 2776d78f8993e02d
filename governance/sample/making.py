"""Months of conversations: weekday patterns, growth, failures, unpriced calls, a price that changed."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import Any, NamedTuple

from agent.domain.pricing import row_cost
from agent.models import Message, Run, Thread, ToolCall, UsageEntry
from governance.sample.cast import MODELS, MOST_RUNS, OPEN_FOR, OPEN_FROM, PEOPLE, SUBJECTS, WEEKDAYS, SampleModel
from governance.sample.choosing import (
    AGENT_CHOICE,
    ERROR_CHOICE,
    MODEL_CHOICE,
    PURPOSE_CHOICE,
    RETRIES_CHOICE,
    STATUS_CHOICE,
    TENANT_CHOICE,
    TOOL_CHOICE,
)
from governance.sample.pricing import prices_of
from governance.sample.writing import Writer

Row = dict[str, Any]

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

    thread: Row
    agent_name: str | None
    model: SampleModel
    start: datetime


class Counts(NamedTuple):
    """The tokens of one call."""

    input_tokens: int
    output_tokens: int
    cache_write_tokens: int | None
    cache_read_tokens: int | None
    cache_write_1h_tokens: int | None = None


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
        self._prices = {model.name: list(prices_of(model, self._first, sample.days)) for model in MODELS}
        self._people: list[tuple[str, str | None]] = [
            (f"person-{number}", TENANT_CHOICE.by(self._random)) for number in range(1, PEOPLE + 1)
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
        thread = {
            "id": self._id(start),
            "actor_ref": actor_ref,
            "tenant_ref": tenant_ref,
            "title": f"{self._random.choice(SUBJECTS)} {self._random.randint(1000, 9999)}",
            "last_seq": 0,
            "created_at": start,
            "updated_at": start,
            "deleted_at": start + timedelta(hours=1) if self._random.random() < 0.01 else None,
        }
        self._writer.add(Thread, thread)
        model = MODEL_CHOICE.by(self._random)
        return Talk(thread=thread, agent_name=AGENT_CHOICE.by(self._random), model=model, start=start)

    def _turn(self, talk: Talk, turn: int, *, runs_left: int) -> None:
        at = talk.start + timedelta(minutes=4 * turn, seconds=self._random.randint(0, 90))
        status = STATUS_CHOICE.by(self._random)
        duration = int(self._random.lognormvariate(8.4, 0.9))
        run = self._run(talk, at, status, duration)
        asked, answer = self._messages(talk, turn, run)
        calls = self._left if not runs_left else max(1, min(round(self._left / (runs_left + 1)), self._left))
        for number in range(calls):
            self._usage(talk, run, answer["id"], number, at + timedelta(milliseconds=duration * number / calls))
        self._left -= calls
        if self._random.random() < 0.75:
            self._call(talk, run, answer)
        talk.thread["updated_at"] = max(talk.thread["updated_at"], at)
        self._writer.add(Message, asked)
        self._writer.add(Message, answer)
        self._writer.add(Run, run)

    def _run(self, talk: Talk, at: datetime, status: str, duration: int) -> Row:
        failed = status == "failed"
        run_id = self._id(at)
        return {
            "id": run_id,
            "thread_id": talk.thread["id"],
            "actor_ref": talk.thread["actor_ref"],
            "tenant_ref": talk.thread["tenant_ref"],
            "actor": {"ref": talk.thread["actor_ref"], "roles": [], "tenantRef": talk.thread["tenant_ref"]},
            "agent_name": talk.agent_name,
            "model_id": talk.model.name,
            "status": status,
            "trigger": "send",
            "input": {},
            "stream_run_id": run_id,
            "attempt": 1,
            "prompt_hash": prompt_hash(talk.agent_name, at.year, at.month // 2),
            "retries": RETRIES_CHOICE.by(self._random),
            "created_at": at,
            "started_at": at,
            "settled_at": at + timedelta(milliseconds=duration),
            "duration_ms": duration,
            "active_ms": duration,
            "error_code": ERROR_CHOICE.by(self._random) if failed else None,
            "error_message": "The model could not be reached." if failed else None,
        }

    def _messages(self, talk: Talk, turn: int, run: Row) -> tuple[Row, Row]:
        """The question and the answer of a turn."""
        talk.thread["last_seq"] += 2
        common = {"thread_id": talk.thread["id"], "run_id": run["id"], "agent_name": talk.agent_name}
        asked = dict(
            id=self._id(run["created_at"]),
            seq=talk.thread["last_seq"] - 1,
            role="user",
            content=f"{talk.thread['title']}: question {turn + 1}",
            created_at=run["created_at"],
            **common,
        )
        answer = dict(
            id=self._id(run["created_at"]),
            seq=talk.thread["last_seq"],
            role="assistant",
            content="Here is what I found.",
            created_at=run["settled_at"],
            **common,
        )
        return asked, answer

    def _usage(self, talk: Talk, run: Row, message_id: str, number: int, at: datetime) -> None:
        model = talk.model
        read = int(self._random.lognormvariate(7.2, 0.8)) if model.prices and model.prices[3] else None
        written = self._random.randint(0, 900) if read is not None and number == 0 else None
        purpose = PURPOSE_CHOICE.by(self._random)
        plain = int(self._random.lognormvariate(6.6, 0.7)) + (read or 0) + (written or 0)
        counts = Counts(plain, int(self._random.lognormvariate(5.2, 0.8)), written, read)
        price = next((each for each in reversed(self._prices[model.name]) if each.effective_from <= at), None)
        reported = self._random.randint(10_000, 4_000_000) if model.reports else None
        cost = row_cost(price, counts, reported=reported)  # type: ignore[arg-type]  # a row has what a value has
        entry = {
            "thread_id": talk.thread["id"],
            "run_id": run["id"],
            "message_id": message_id,
            "actor_ref": run["actor_ref"],
            "tenant_ref": run["tenant_ref"],
            "agent_name": run["agent_name"],
            "model_id": model.name,
            "purpose": purpose,
            "step_key": f"llm:{number}",
            "tokens_source": "reported",
            "created_at": at,
            "input_tokens": counts.input_tokens,
            "output_tokens": counts.output_tokens,
            "cache_write_tokens": written,
            "cache_read_tokens": read,
            "reported_cost_nanos": cost.reported_cost_nanos,
            "estimated_cost_nanos": cost.estimated_cost_nanos,
            "cost_nanos": cost.cost_nanos,
            "price_id": cost.price_id,
        }
        self._writer.add(UsageEntry, entry)

    def _call(self, talk: Talk, run: Row, answer: Row) -> None:
        name, kind = TOOL_CHOICE.by(self._random)
        done = "auto_executed" if kind == "read" else "executed"
        status = self._random.choices((done, "failed", "rejected", "expired"), (92, 4, 3 * (kind == "action"), 1))[0]
        took = int(self._random.lognormvariate(5, 1)) if status in {done, "failed"} else None
        settled = run["created_at"] + timedelta(milliseconds=took or 1000)
        decided = kind == "action" and status != "expired"
        call = {
            "id": self._id(run["created_at"]),
            "provider_call_id": "call-1",
            "message_id": answer["id"],
            "thread_id": talk.thread["id"],
            "run_id": run["id"],
            "actor_ref": run["actor_ref"],
            "tenant_ref": run["tenant_ref"],
            "agent_name": run["agent_name"],
            "tool_name": name,
            "tool_type": kind,
            "input": {"order": self._random.randint(1000, 9999)},
            "status": status,
            "decision": ("rejected" if status == "rejected" else "approved") if decided else None,
            "decided_at": settled if decided else None,
            "decided_via": "web" if decided else None,
            "executed_by_ref": run["actor_ref"],
            "approver": "requester" if kind == "action" else None,
            "execution_ms": took,
            "error": "The order could not be read." if status == "failed" else None,
            "created_at": run["created_at"],
            "executed_at": settled if status == done else None,
            "settled_at": settled,
        }
        self._writer.add(ToolCall, call)

    def _id(self, at: datetime) -> str:
        """An id of this instant, as the agent makes them, and the same for the same seed."""
        number = int(at.timestamp() * 1000) << 80 | self._random.getrandbits(80)
        text = f"{(number & ~(0xF << 76 | 0b11 << 62)) | 0x7 << 76 | 0b10 << 62:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


@cache
def prompt_hash(agent_name: str | None, year: int, part: int) -> str:
    """A prompt's hash: an agent has a new one every other month."""
    return f"{uuid.uuid5(uuid.NAMESPACE_OID, f'{agent_name} {year} {part}').int:064x}"
