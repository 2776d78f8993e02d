"""A guarded move says whether it won, and a named read means what it says."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agent.domain.states import MessageRole, RunStatus, ToolCallStatus
from agent.errors import IllegalMove
from agent.models import Message, ModelPrice, Run, Thread, ToolCall, UsageEntry
from tests.models import rows

pytestmark = pytest.mark.django_db
LATER = rows.NOW + timedelta(minutes=1)


def test_an_idle_thread_is_held_by_the_first_to_claim_it() -> None:
    thread = rows.thread()
    assert Thread.objects.claim(thread.pk, "one")
    assert Thread.objects.claim(thread.pk, "one")
    assert not Thread.objects.claim(thread.pk, "two")
    assert not Thread.objects.claim(thread.pk, "two", replacing="three")
    assert Thread.objects.claim(thread.pk, "two", replacing="one")
    assert not Thread.objects.release(thread.pk, "one")
    assert Thread.objects.held_by("two").get() == thread
    assert Thread.objects.release(thread.pk, "two")
    assert Thread.objects.claim(thread.pk, "three", replacing="gone")
    assert not Thread.objects.claim("unknown", "one")


def test_numbers_are_taken_once() -> None:
    thread = rows.thread()
    assert Thread.objects.advance(thread.pk)
    assert Thread.objects.advance(thread.pk, 2)
    assert not Thread.objects.advance("unknown")
    assert Thread.objects.get(pk=thread.pk).last_seq == 3


def test_lists_hide_scratch_and_deleted_threads() -> None:
    shown, scratch = rows.thread(), rows.thread(transient=True)
    rows.thread(deleted_at=rows.NOW)
    assert set(Thread.objects.alive()) == {shown, scratch}
    assert list(Thread.objects.listed()) == [shown]


def test_a_blank_answer_is_not_shown_to_models() -> None:
    thread = rows.thread()
    rows.message(thread, 1, role=MessageRole.USER, content="")
    rows.message(thread, 2)
    rows.message(thread, 3, tool_calls=[{"id": "c"}])
    rows.message(thread, 4, content="x")
    shown = Message.objects.shown_to_models()
    assert [one.seq for one in shown.in_order()] == [1, 3, 4]
    assert [one.seq for one in shown.newest_first().before(4)] == [3, 1]
    assert [one.seq for one in Message.objects.answers().since(3).in_order()] == [3, 4]


def test_a_run_moves_from_the_status_that_was_seen() -> None:
    run = rows.run()
    assert Run.objects.move(run.pk, RunStatus.QUEUED, RunStatus.RUNNING, attempt=1)
    assert not Run.objects.move(run.pk, RunStatus.QUEUED, RunStatus.RUNNING, attempt=1)
    with pytest.raises(IllegalMove):
        Run.objects.move(run.pk, RunStatus.COMPLETED, RunStatus.RUNNING)
    assert Run.objects.open().get().attempt == 1


def test_a_run_is_claimable_when_queued_or_when_its_lease_has_lapsed() -> None:
    queued = rows.run()
    lapsed = rows.run(status=RunStatus.RUNNING, lease_owner="w", attempt=2, lease_expires_at=rows.NOW)
    live = rows.run(status=RunStatus.RUNNING, lease_owner="w", attempt=3, lease_expires_at=LATER)
    rows.run(status=RunStatus.WAITING)
    rows.run(status=RunStatus.COMPLETED)
    assert set(Run.objects.claimable(rows.NOW)) == {queued, lapsed}
    assert Run.objects.leased_to("w", 3).get() == live


def test_a_call_awaits_a_decision_until_it_is_decided_or_overdue() -> None:
    message = rows.message(rows.thread())
    waiting = rows.tool_call(message, "1", status=ToolCallStatus.PENDING_APPROVAL, expires_at=LATER)
    rows.tool_call(message, "2", status=ToolCallStatus.PENDING_APPROVAL, decision="approved", expires_at=rows.NOW)
    rows.tool_call(message, "3")
    assert ToolCall.objects.unsettled().count() == 3
    assert ToolCall.objects.awaiting_decision().get() == waiting
    assert not ToolCall.objects.overdue(rows.NOW).exists()
    assert ToolCall.objects.overdue(LATER).get() == waiting
    assert ToolCall.objects.move(waiting.pk, waiting.status, ToolCallStatus.EXPIRED, settled_at=LATER)
    assert not ToolCall.objects.move(waiting.pk, waiting.status, ToolCallStatus.REJECTED)


def test_the_price_in_force_is_the_newest_that_has_begun() -> None:
    rows.price(effective_from=rows.NOW - timedelta(days=9))
    current = rows.price(effective_from=rows.NOW)
    rows.price(effective_from=LATER)
    assert ModelPrice.objects.of_model("m").in_force(rows.NOW).first() == current


def test_a_span_of_the_ledger_is_half_open() -> None:
    first = rows.usage(cost_nanos=0)
    rows.usage(created_at=LATER)
    assert list(UsageEntry.objects.between(rows.NOW, LATER)) == [first]
    assert [one.created_at for one in UsageEntry.objects.unpriced()] == [LATER]
