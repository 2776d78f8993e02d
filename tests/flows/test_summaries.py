"""The rolling summary: one more call when something new is left out, kept, used again, never in the way of a turn."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from agent.domain.canonical import canonical_json
from agent.domain.history import HistoryPolicy, HistoryPolicyContext, fingerprint_of
from agent.domain.model_calls import ModelRequest, Usage
from agent.domain.runs import Step
from agent.domain.snapshots import TurnMessage
from agent.domain.summaries import DEFAULT_HISTORY_SUMMARY_INSTRUCTION, leading_summary
from agent.domain.windows import as_policy
from agent.errors import ModelError
from agent.flows import history
from agent.flows.threads import fork, truncate
from agent.history import (
    History,
    HistorySelection,
    HistorySummary,
    SummaryContext,
    summarize_with_model,
    window_history,
)
from agent.providers.scripted import ScriptedProvider, ScriptedReply, call
from agent.registry import agent, isolated_registry, tool
from agent.store import OrmStore
from agent.testing import InMemoryStore
from tests.flows.conftest import ALICE, Site
from tests.flows.test_replay import Killed as Cut
from tests.flows.test_replay import MortalStore

MakeSite = Callable[..., Site]
SUMMARY = "history_summary"
LEFT_OUT = "The messages that came before are left out. Rely on this summary as a faithful account of them."
STEP = "history:summarize"


@dataclass
class Summaries:
    """A summarizer that notes what it was given; `gives` makes its answer from how often it was asked."""

    gives: Callable[[int], Any] = field(default=lambda number: HistorySummary(text=f"summary {number}"), compare=False)
    asked: list[tuple[list[int], str | None]] = field(default_factory=list, compare=False)

    async def __call__(
        self, dropped: Sequence[TurnMessage], context: SummaryContext, previous: str | None
    ) -> HistorySummary | None:
        self.asked.append(([message.seq for message in dropped], previous))
        answer = self.gives(len(self.asked))
        if isinstance(answer, BaseException):
            raise answer
        return answer  # type: ignore[no-any-return]


def declare(declared: History | HistoryPolicy, prompt: Any = "You help.") -> HistoryPolicy:
    agent(name="shop", history=declared, prompt=prompt)(type("Shop", (), {}))
    return as_policy(declared)


def model(request: ModelRequest) -> ScriptedReply:
    """Tells how many messages it was shown, or was given to summarize."""
    if request.purpose == SUMMARY:
        return ScriptedReply(f"they talked ({request.messages[0].content.count('<message ')})")
    return ScriptedReply(f"I saw {len(request.messages)}.")


def talk(desk: Site, turns: int, thread_id: str | None = None) -> str:
    for number in range(turns):
        run = desk.turn(f"question {number}", thread_id=thread_id)
        assert run.status == "completed", run.error_message
        thread_id = run.thread_id
    assert thread_id is not None
    return thread_id


def names(desk: Site, run_id: str) -> list[str]:
    return [step.name for step in desk.steps(run_id)]


def payload(desk: Site, run_id: str, name: str) -> dict[str, Any]:
    (found,) = [step.payload for step in desk.steps(run_id) if step.name == name]
    return dict(found)


def rows(desk: Site, run_id: str) -> list[tuple[str, str | None]]:
    return [(str(row.purpose), row.step_key) for row in desk.store.usage_of_run(run_id)]


def shown(desk: Site) -> list[str]:
    """What the model was shown at last."""
    chats = [request for request in desk.provider.requests if request.purpose == "chat"]
    return [message.content for message in chats[-1].messages]


def seqs(messages: Sequence[dict[str, Any]]) -> list[int]:
    return [message["seq"] for message in messages]


def kept_summary(desk: Site, thread_id: str, policy: HistoryPolicy) -> tuple[int, str] | None:
    stored = desk.store.thread_summary(thread_id, fingerprint_of(policy))
    return None if stored is None else (stored.up_to_seq, stored.text)


def test_what_is_left_out_is_summarized_by_the_runs_model_and_leads(site: MakeSite) -> None:
    desk = site(model)
    policy = declare(History(max_messages=3, summarize=True))
    thread_id = talk(desk, 1)
    assert len(desk.provider.requests) == 1  # nothing was dropped
    run = desk.turn("second", thread_id=thread_id)
    assert STEP not in names(desk, run.id)
    run = desk.turn("third", thread_id=thread_id)
    steps = ["patch:agent:selected-history", "load:thread", STEP, "run:prompt-stages", "persist:run:start", "llm:0"]
    assert names(desk, run.id)[1:7] == steps
    loaded = payload(desk, run.id, "load:thread")
    assert (seqs(loaded["messages"]), seqs(loaded["dropped"])) == ([3, 4, 5], [1, 2])
    assert "summary" not in loaded
    assert loaded["approvalMode"] == "blocking"
    assert payload(desk, run.id, STEP) == {"text": "they talked (2)", "upToSeq": 2}
    assert rows(desk, run.id) == [(SUMMARY, STEP), ("chat", "llm:0")]
    assert kept_summary(desk, thread_id, policy) == (2, "they talked (2)")
    assert shown(desk) == [
        f"<conversation_summary>\nthey talked (2)\n</conversation_summary>\n{LEFT_OUT}",
        "second",
        "I saw 3.",
        "third",
    ]
    asked = next(request for request in desk.provider.requests if request.purpose == SUMMARY)
    assert (asked.system, asked.tools, asked.model) == (DEFAULT_HISTORY_SUMMARY_INSTRUCTION, (), "scripted")
    assert asked.idempotency_key == f"{run.id}:{STEP}"


def test_the_summary_is_not_on_the_users_stream(site: MakeSite) -> None:
    desk = site(model)
    declare(History(max_messages=1, summarize=True))
    thread_id = talk(desk, 1)
    run = desk.turn("again", thread_id=thread_id)
    assert STEP in names(desk, run.id)
    frames = desk.frames(run.id)
    assert [frame["kind"] for frame in frames[:-1]].count("step-start") == 1
    assert "talked" not in canonical_json(frames)
    assert "talked" not in canonical_json([message.content for message in desk.messages(thread_id)])


def test_only_what_is_new_is_folded_into_the_earlier_summary(site: MakeSite) -> None:
    desk, summaries = site(model), Summaries()
    policy = declare(window_history(3, summarize=summaries))
    thread_id = talk(desk, 4)
    assert summaries.asked == [([1, 2], None), ([3, 4], "summary 1")]
    run = desk.turn("fifth", thread_id=thread_id)
    loaded = payload(desk, run.id, "load:thread")
    assert loaded["summary"] == {"text": "summary 2", "upToSeq": 4}
    assert seqs(loaded["dropped"]) == [5, 6]
    assert kept_summary(desk, thread_id, policy) == (6, "summary 3")
    assert shown(desk)[0] == leading_summary("summary 3").content


def test_nothing_new_means_no_call_and_no_step(site: MakeSite) -> None:
    desk, summaries = site(model), Summaries()
    declare(window_history(3, summarize=summaries))
    thread_id = talk(desk, 3)
    run = desk.turn(None, thread_id=thread_id, regenerate=True)
    assert (run.status, len(summaries.asked)) == ("completed", 1)
    assert STEP not in names(desk, run.id)
    loaded = payload(desk, run.id, "load:thread")
    assert loaded["summary"] == {"text": "summary 1", "upToSeq": 2}
    assert "dropped" not in loaded
    assert shown(desk)[0] == leading_summary("summary 1").content
    assert rows(desk, run.id) == [("chat", "llm:0")]


def test_without_a_summarizer_what_is_dropped_is_written_nowhere(site: MakeSite) -> None:
    desk = site(model)
    declare(History(max_messages=1))
    thread_id = talk(desk, 2)
    run = desk.turn("last", thread_id=thread_id)
    loaded = payload(desk, run.id, "load:thread")
    assert seqs(loaded["messages"]) == [5]
    assert not {"dropped", "summary"} & loaded.keys()


def test_a_summary_of_another_policy_is_not_used(site: MakeSite) -> None:
    desk, summaries = site(model), Summaries()
    declare(window_history(3, summarize=summaries))
    thread_id = talk(desk, 3)
    agent(name="other", prompt="p", history=window_history(2, summarize=summaries))(type("Other", (), {}))
    run = desk.turn("fourth", thread_id=thread_id, agent="other")
    assert summaries.asked[-1] == ([1, 2, 3, 4, 5], None)
    assert "summary" not in payload(desk, run.id, "load:thread")


@pytest.mark.parametrize("wrong", [RuntimeError("secret words"), "not a summary", ModelError("The model is away.")])
def test_a_failing_summarizer_does_not_stop_the_turn(
    site: MakeSite, caplog: pytest.LogCaptureFixture, wrong: object
) -> None:
    desk, summaries = site(model), Summaries()
    policy = declare(window_history(3, summarize=summaries))
    thread_id = talk(desk, 2)
    summaries.gives = lambda number: wrong if number != 2 else HistorySummary(text="kept")
    with caplog.at_level(logging.WARNING, "agent.history"):
        run = desk.turn("third", thread_id=thread_id)
    assert run.status == "completed"
    assert payload(desk, run.id, STEP) == {"text": None, "failed": True}
    assert "goes on without a new summary" in caplog.text
    assert shown(desk) == ["question 1", "I saw 3.", "third"]
    desk.turn("fourth", thread_id=thread_id)
    assert summaries.asked[-1] == ([1, 2, 3, 4], None)  # what was not folded comes again
    run = desk.turn("fifth", thread_id=thread_id)
    assert payload(desk, run.id, STEP) == {"text": "kept", "failed": True}
    assert kept_summary(desk, thread_id, policy) == (4, "kept")
    assert shown(desk)[0] == leading_summary("kept").content


def test_a_model_that_fails_as_summarizer_is_tried_again_and_paid_for(site: MakeSite) -> None:
    answers: list[Any] = [ScriptedReply("half", error=ModelError(transient=True)), ModelError("no")]

    def script(request: ModelRequest) -> Any:
        return answers.pop(0) if request.purpose == SUMMARY else "Yes."

    desk = site(script)
    declare(History(max_messages=1, summarize=True))
    thread_id = talk(desk, 1)
    run = desk.turn("second", thread_id=thread_id)
    assert (run.status, run.retries) == ("completed", 2)
    assert payload(desk, run.id, STEP) == {"text": None, "failed": True}
    assert rows(desk, run.id) == [(SUMMARY, f"{STEP}#1.1"), (SUMMARY, f"{STEP}#1.2"), ("chat", "llm:0")]


@pytest.mark.parametrize("gives", [None, HistorySummary(text=" \n")])
def test_without_words_no_message_is_added_and_the_watermark_stays(
    site: MakeSite, gives: HistorySummary | None
) -> None:
    desk, summaries = site(model), Summaries(lambda _: gives)
    policy = declare(window_history(1, summarize=summaries))
    thread_id = talk(desk, 1)
    run = desk.turn("second", thread_id=thread_id)
    assert payload(desk, run.id, STEP) == {"text": None if gives is None else "", "upToSeq": 0}
    assert shown(desk) == ["second"]
    assert kept_summary(desk, thread_id, policy) is None


def test_a_model_without_words_leaves_the_earlier_summary(site: MakeSite) -> None:
    words = ["first", "", "third"]

    def script(request: ModelRequest) -> str:
        return words.pop(0) if request.purpose == SUMMARY else "Yes."

    desk = site(script)
    policy = declare(History(max_messages=1, summarize=True))
    thread_id = talk(desk, 3)
    assert shown(desk) == [leading_summary("first").content, "question 2"]
    assert kept_summary(desk, thread_id, policy) == (2, "first")
    talk(desk, 1, thread_id)
    assert kept_summary(desk, thread_id, policy) == (6, "third")


def test_a_truncation_that_reaches_the_summary_discards_it(site: MakeSite) -> None:
    desk, summaries = site(model), Summaries()
    declare(window_history(1, summarize=summaries))
    thread_id = talk(desk, 3)
    assert summaries.asked[-1] == ([3, 4], "summary 1")
    messages = desk.messages(thread_id)
    truncate(ALICE, thread_id, messages[4].id)  # the summary reaches 4
    desk.turn("again", thread_id=thread_id)
    assert len(summaries.asked) == 2
    assert shown(desk)[0] == leading_summary("summary 2").content
    truncate(ALICE, thread_id, messages[3].id)
    desk.turn("once more", thread_id=thread_id)
    assert summaries.asked[2] == ([1, 2, 3], None)


def test_a_fork_starts_without_a_summary(site: MakeSite) -> None:
    desk, summaries = site(model), Summaries()
    declare(window_history(1, summarize=summaries))
    thread_id = talk(desk, 2)
    copy = fork(ALICE, thread_id, "")
    desk.turn("on", thread_id=copy.id)
    assert summaries.asked[-1] == ([1, 2, 3, 4], None)


def test_a_summarizers_own_report_is_its_ledger_row(site: MakeSite) -> None:
    usage = Usage(input_tokens=70, output_tokens=7)
    made = HistorySummary(text="so", usage=usage, model_id="own-model", reported_cost_usd=Decimal("0.002"))
    desk = site(model)
    declare(window_history(1, summarize=Summaries(lambda _: made)))
    run = desk.turn("second", thread_id=talk(desk, 1))
    row = desk.store.usage_of_run(run.id)[0]
    assert (row.purpose, row.step_key, row.model_id, row.input_tokens) == (SUMMARY, STEP, "own-model", 70)
    assert (row.reported_cost_nanos, row.tokens_source) == (2_000_000, "reported")


def test_a_summarizer_that_reports_no_usage_has_no_ledger_row(site: MakeSite) -> None:
    desk = site(model)
    declare(window_history(1, summarize=Summaries()))
    run = desk.turn("second", thread_id=talk(desk, 1))
    assert rows(desk, run.id) == [("chat", "llm:0")]


def test_a_summarizer_may_ask_more_than_once_and_every_call_is_on_the_ledger(site: MakeSite) -> None:
    async def in_halves(
        dropped: Sequence[TurnMessage], context: SummaryContext, previous: str | None
    ) -> HistorySummary | None:
        halves = [await context.ask("Shorten.", message.content) for message in dropped]
        return HistorySummary(text=" ".join(reply.text for reply in halves))

    desk = site(model)
    declare(window_history(1, summarize=in_halves))
    run = desk.turn("second", thread_id=talk(desk, 1))
    assert payload(desk, run.id, STEP)["text"] == "they talked (0) they talked (0)"
    assert rows(desk, run.id) == [(SUMMARY, f"{STEP}#1.1"), (SUMMARY, STEP), ("chat", "llm:0")]


def test_another_model_may_summarize(site: MakeSite) -> None:
    desk = site(model)
    declare(window_history(1, summarize=summarize_with_model("small", "Be brief.")))
    run = desk.turn("second", thread_id=talk(desk, 1))
    asked = next(request for request in desk.provider.requests if request.purpose == SUMMARY)
    assert (asked.model, asked.system) == ("small", "Be brief.")
    assert [row.model_id for row in desk.store.usage_of_run(run.id)] == ["small", "scripted"]


def test_a_cancel_breaks_the_summary_off(site: MakeSite) -> None:
    desk = site(model)
    begun = asyncio.Event()

    async def slow(dropped: object, context: SummaryContext, previous: str | None) -> HistorySummary:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    declare(window_history(1, summarize=slow))
    thread_id = talk(desk, 1)
    admitted = desk.send("second", thread_id=thread_id)

    async def when_begun(driver: Any) -> None:
        await begun.wait()
        driver.cancel()

    tasks: list[asyncio.Task[None]] = []
    run = desk.drive(admitted.run_id, meanwhile=lambda driver: tasks.append(asyncio.ensure_future(when_begun(driver))))
    assert run.status == "cancelled"
    assert STEP not in names(desk, run.id)
    assert desk.store.active_run_for_thread(thread_id) is None


def test_a_cancelled_model_call_for_a_summary_is_on_the_ledger(site: MakeSite) -> None:
    drivers: list[Any] = []

    async def script(request: ModelRequest) -> str:
        if request.purpose == SUMMARY:
            drivers[-1].cancel()
            await asyncio.Event().wait()
        return "Yes."

    desk = site(script)
    declare(History(max_messages=1, summarize=True))
    admitted = desk.send("second", thread_id=talk(desk, 1))
    run = desk.drive(admitted.run_id, meanwhile=drivers.append)
    assert run.status == "cancelled"
    assert rows(desk, run.id) == [(SUMMARY, f"{STEP}#1.1")]
    assert [frame.get("kind", "end") for frame in desk.frames(run.id)] == ["cancelled", "end"]


class Killed(BaseException):
    """The process is gone: nobody cleans up."""

    agent_signal = True  # no code of the host survives it


def lapse(desk: Site) -> None:
    desk.store.clock = lambda: timezone.now() + timedelta(seconds=61)


def test_a_worker_that_dies_while_it_summarizes_is_followed_by_one_that_asks_again(site: MakeSite) -> None:
    desk = site(model)
    summaries = Summaries(lambda number: Killed() if number == 1 else HistorySummary(text="so far"))
    policy = declare(window_history(1, summarize=summaries))
    thread_id = talk(desk, 1)
    run_id = desk.send("second", thread_id=thread_id).run_id
    with pytest.raises(Killed):
        desk.drive(run_id)
    assert names(desk, run_id)[-1] == "load:thread"
    lapse(desk)
    run = desk.drive(run_id)
    assert (run.status, run.attempt, run.retries) == ("completed", 2, 1)
    assert summaries.asked == [([1, 2], None), ([1, 2], None)]
    assert kept_summary(desk, thread_id, policy) == (2, "so far")


def test_a_recorded_summary_is_read_back_and_not_asked_for_again(site: MakeSite) -> None:
    deaths = [Killed()]

    def script(request: ModelRequest) -> Any:
        return deaths.pop() if deaths and request.messages[-1].content == "second" else model(request)

    desk, summaries = site(script), Summaries()
    declare(window_history(1, summarize=summaries))
    run_id = desk.send("second", thread_id=talk(desk, 1)).run_id
    with pytest.raises(Killed):
        desk.drive(run_id)
    lapse(desk)
    assert desk.drive(run_id).status == "completed"
    assert len(summaries.asked) == 1
    assert shown(desk)[0] == leading_summary("summary 1").content


def test_a_policy_that_stopped_summarizing_leaves_a_begun_run_its_steps(site: MakeSite) -> None:
    desk = site(model)
    declare(window_history(1, summarize=Summaries(lambda _: Killed())))
    run_id = desk.send("second", thread_id=talk(desk, 1)).run_id
    with pytest.raises(Killed):
        desk.drive(run_id)
    lapse(desk)
    with isolated_registry():  # the same site after a release
        declare(window_history(1))
        assert desk.drive(run_id).status == "completed"
    assert payload(desk, run_id, STEP) == {"text": None, "failed": True}


def test_a_prompt_that_has_to_be_called_is_called_after_the_summary(site: MakeSite) -> None:
    desk, told = site(model), []

    def prompt(_: object) -> str:
        told.append("prompt")
        return "It is Monday."

    def gives(_: int) -> HistorySummary:
        told.append("summary")
        return HistorySummary(text="so far")

    declare(window_history(1, summarize=Summaries(gives)), prompt=prompt)
    thread_id = talk(desk, 1)
    told.clear()
    run = desk.turn("second", thread_id=thread_id)
    assert told == ["summary", "prompt"]
    assert names(desk, run.id)[2:6] == ["load:thread", STEP, "run:prompt-stages", "persist:run:start"]


class FirstAndLast:
    """Keeps the first message and the last, tells the rest but every fourth to the summarizer."""

    fingerprint = "first and last"

    def __init__(self) -> None:
        self.summarize = Summaries()

    def select(self, messages: Sequence[TurnMessage], context: object) -> HistorySelection:
        inner = [message for message in messages[1:-1] if message.seq % 4]
        return HistorySelection(keep=(*messages[:1], *messages[1:][-1:]), drop=tuple(inner))


def test_what_an_own_policy_drops_with_gaps_is_covered_up_to_the_first_gap(site: MakeSite) -> None:
    desk, policy = site(model), FirstAndLast()
    declare(policy)
    thread_id = talk(desk, 3)
    assert policy.summarize.asked == [([2], None), ([3], "summary 1")]  # 4 is told nowhere
    desk.turn("fourth", thread_id=thread_id)
    assert policy.summarize.asked[-1] == ([5, 6], "summary 2")
    assert kept_summary(desk, thread_id, policy) == (3, "summary 2")  # not above 4
    run = desk.turn("fifth", thread_id=thread_id)
    assert policy.summarize.asked[-1] == ([5, 6, 7], "summary 2")  # folded again
    loaded = payload(desk, run.id, "load:thread")
    assert (loaded["foldsUpToSeq"], seqs(loaded["messages"])) == (3, [1, 9])
    assert payload(desk, run.id, STEP) == {"text": "summary 4", "upToSeq": 3}


class WithoutSummaries(OrmStore):
    capabilities = OrmStore.capabilities - {"summaries"}


def test_a_store_without_summaries_makes_one_on_every_run_that_drops_something(site: MakeSite) -> None:
    desk, summaries = site(model, STORE=WithoutSummaries()), Summaries()
    declare(window_history(1, summarize=summaries))
    thread_id = talk(desk, 3)
    assert [given for given, _ in summaries.asked] == [[1, 2], [1, 2, 3, 4]]
    assert shown(desk)[0] == leading_summary("summary 2").content
    assert OrmStore().thread_summary(thread_id, fingerprint_of(window_history(1, summarize=summaries))) is None


class WithoutTurnReader(OrmStore):
    capabilities = OrmStore.capabilities - {"turn_reader"}


def test_the_journal_is_the_same_to_the_byte_whichever_read_the_store_has(site: MakeSite) -> None:
    desk, summaries = site(model), Summaries()
    policies = [
        declare(window_history(3, summarize=summaries)),
        window_history(2),
        window_history(None, 60),
        window_history(None, 60, summarize=summaries),
        window_history(),
        FirstAndLast(),
    ]
    thread_id = talk(desk, 6)
    context = HistoryPolicyContext(thread_id=thread_id, actor=ALICE, agent_name="shop")
    for policy in policies:
        for chunk in (1, 2, 3, 100):
            told = [history.load(store, policy, context, chunk=chunk) for store in (OrmStore(), WithoutTurnReader())]
            assert canonical_json(told[0]) == canonical_json(told[1])


def test_a_run_recorded_before_the_marker_ends_on_the_positions_it_had(site: MakeSite) -> None:
    desk, summaries = site(model), Summaries()
    policy = declare(window_history(1, summarize=summaries))
    thread_id = talk(desk, 1)
    run_id = desk.send("second", thread_id=thread_id).run_id
    lease = desk.store.claim_run(run_id, "an older release", 60)
    assert lease is not None
    context = HistoryPolicyContext(thread_id=thread_id, actor=ALICE, agent_name="shop")
    whole = history.load_whole(desk.store, context)
    assert seqs(whole["messages"]) == [1, 2, 3]
    desk.store.record_step(lease, Step(position=1, name="load:thread", payload=whole))
    assert desk.store.release_run(lease)
    assert desk.drive(run_id).status == "completed"
    assert names(desk, run_id) == [
        "persist:user",
        "load:thread",
        STEP,
        "run:prompt-stages",
        "persist:run:start",
        "llm:0",
        "persist:run:end",
    ]
    assert summaries.asked == [([1, 2], None)]
    assert shown(desk) == [leading_summary("summary 1").content, "second"]
    assert kept_summary(desk, thread_id, policy) == (2, "summary 1")


def test_an_older_run_without_a_summary_stays_without_one(site: MakeSite) -> None:
    desk, summaries = site(model), Summaries()
    declare(window_history(1, summarize=summaries))
    thread_id = talk(desk, 1)
    run_id = desk.send("second", thread_id=thread_id).run_id
    lease = desk.store.claim_run(run_id, "an older release", 60)
    assert lease is not None
    context = HistoryPolicyContext(thread_id=thread_id, actor=ALICE, agent_name="shop")
    stages = {"prompt": ["Old."], "maxSteps": 8, "model": None}
    older = [("load:thread", history.load_whole(desk.store, context)), ("run:prompt-stages", stages)]
    steps = [Step(position=place, name=name, payload=told) for place, (name, told) in enumerate(older, start=1)]
    desk.store.record_steps(lease, steps)
    assert desk.store.release_run(lease)
    assert desk.drive(run_id).status == "completed"
    assert summaries.asked == []
    assert shown(desk) == ["second"]


def test_a_conversation_that_is_too_long_for_the_model_is_shortened_once(site: MakeSite) -> None:
    sizes: list[int] = []

    def script(request: ModelRequest) -> Any:
        sizes.append(sum(len(message.content) for message in request.messages))
        if sizes[-1] > 400:
            return ModelError("The conversation is too long for the model.", status=400, too_long=True)
        asks = request.messages[-1].content == "question 4"
        return ScriptedReply("x" * 60, calls=[call("look")] if asks else [])

    desk = site(script)

    @tool
    def look() -> str:
        """Look."""
        return "found"

    agent(name="shop", prompt="p", tools=[look])(type("Shop", (), {}))
    thread_id = talk(desk, 4)
    run = desk.turn("question 4", thread_id=thread_id)
    assert (run.status, run.retries) == ("completed", 0)
    talk(desk, 1, thread_id)
    run = desk.turn("question 4", thread_id=thread_id)
    assert (run.status, run.retries) == ("completed", 1)
    assert [row.step_key for row in desk.store.usage_of_run(run.id)] == ["llm:0#1.1", "llm:0", "llm:1"]
    first, second = payload(desk, run.id, "llm:0"), payload(desk, run.id, "llm:1")
    assert first["shortened"] is True
    assert second["shortened"] is True  # the next step of the run is not too long again
    assert sizes[-3] > 400 >= sizes[-2]
    assert len(desk.messages(thread_id)) == 16  # nothing is lost of the thread


def test_what_cannot_be_shortened_fails_with_the_models_sentence(site: MakeSite) -> None:
    desk = site(lambda _: ModelError("The conversation is too long for the model.", too_long=True))
    run = desk.turn("much too long")
    assert (run.status, len(desk.provider.requests)) == ("failed", 1)
    assert desk.frames(run.id)[-1]["end"]["message"] == "The conversation is too long for the model."


def test_a_summary_that_is_too_long_for_its_model_is_asked_for_with_less(site: MakeSite) -> None:
    def script(request: ModelRequest) -> Any:
        if request.purpose == SUMMARY and len(request.messages[0].content) > 1500:
            return ModelError(too_long=True)
        return model(request)

    desk = site(script)
    declare(window_history(1, summarize=summarize_with_model(max_characters=8000)))
    run = desk.turn("second", thread_id=desk.turn("long " * 700).thread_id)
    assert rows(desk, run.id) == [(SUMMARY, f"{STEP}#1.1"), (SUMMARY, STEP), ("chat", "llm:0")]
    assert payload(desk, run.id, STEP) == {"text": "they talked (2)", "upToSeq": 2}


@pytest.mark.parametrize("bound", [1, 2])
def test_the_question_rides_along_with_every_step_of_its_run(site: MakeSite, bound: int) -> None:
    def script(request: ModelRequest) -> ScriptedReply:
        asked = len(request.messages) < 3
        return ScriptedReply("Looking." if asked else "Found.", calls=[call("look")] if asked else [])

    desk = site(script)

    @tool
    def look() -> str:
        """Look."""
        return "found"

    agent(name="shop", prompt="p", tools=[look], history=History(max_messages=bound))(type("Shop", (), {}))
    thread_id = talk(desk, 1)
    run = desk.turn("and now?", thread_id=thread_id)
    assert run.status == "completed"
    steps = [request.messages for request in list(desk.provider.requests)[-3:]]
    assert [[message.role for message in sent] for sent in steps] == [
        ["user"],
        ["user", "assistant"],
        ["user", "assistant", "assistant"],
    ]
    assert {sent[0].content for sent in steps} == {"and now?"}


def test_a_summary_is_kept_in_memory_too(runner: object) -> None:
    summaries = Summaries()
    store = InMemoryStore()
    mine = {"STORE": store, "SINK": "memory", "PROVIDERS": {"scripted": ScriptedProvider(model)}}
    with isolated_registry() as registry, override_settings(AGENT=mine):
        policy = declare(window_history(1, summarize=summaries))
        desk = Site(registry=registry, runner=runner, provider=ScriptedProvider([]), store=store)  # type: ignore[arg-type]
        thread_id = talk(desk, 3)
    assert summaries.asked == [([1, 2], None), ([3, 4], "summary 1")]
    assert kept_summary(desk, thread_id, policy) == (4, "summary 2")


@pytest.mark.parametrize("after_commit", [False, True])
@pytest.mark.parametrize("unit", [1, 2, 3])
def test_a_turn_with_a_summary_cut_at_a_commit_ends_as_if_undisturbed(
    site: MakeSite, unit: int, after_commit: bool
) -> None:
    """The start with the mark of the summary, the summary with the start of the prompt, the answer with the end."""
    store = MortalStore()
    desk = site(model, STORE=store)
    policy = declare(History(max_messages=1, summarize=True))
    run_id = desk.send("second", thread_id=talk(desk, 1)).run_id
    store.dies_at, store.after_commit = unit, after_commit
    with pytest.raises(Cut):
        desk.drive(run_id)
    store.dies_at = None
    lapse(desk)
    run = desk.drive(run_id)
    assert (run.status, [message.content for message in desk.messages(run.thread_id)][-2:]) == (
        "completed",
        ["second", "I saw 2."],
    )
    assert kept_summary(desk, run.thread_id, policy) == (2, "they talked (2)")
    assert names(desk, run_id)[2:7] == ["load:thread", STEP, "run:prompt-stages", "persist:run:start", "llm:0"]
    told = [key for _, key in rows(desk, run_id)]
    broken = {(1, True): f"{STEP}#1.1", (2, False): f"{STEP}#1.1", (2, True): "llm:0#1.1", (3, False): "llm:0#1.1"}
    assert [key for key in told if key and "#" not in key] == [STEP, "llm:0"]
    assert [key for key in told if key and "#" in key] == [
        key for at, key in broken.items() if at == (unit, after_commit)
    ]
    assert run.retries == len(told) - 2
