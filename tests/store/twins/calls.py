"""Tool calls and what people decide about them."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from agent.domain.actor import Actor
from agent.domain.commands import UNSET, AppendMessage, ApprovalFilter, RecordToolCall, ToolCallPatch, ToolDecision
from agent.domain.snapshots import Json, Message
from agent.domain.states import ToolCallStatus
from tests.store.twins.machine import ACTORS, CALLS, Twins, actors, calls, json_values, limits, refs, runs, texts

statuses = st.sampled_from([status.value for status in ToolCallStatus])
decisions = st.sampled_from(["approved", "approved", "rejected", "answered", "skipped", "expired"])


class Calls(Twins):
    @initialize(target=Twins.messages)
    def two_waiting_calls(self) -> str:
        """Two calls in one message that wait for a person, the second under four eyes."""
        thread = self.both(lambda store: store.create_thread(actor=ACTORS[0])).id
        self.seen_threads.append(thread)
        message = AppendMessage(thread_id=thread, role="assistant", content="", run_id="run-0")
        stored = self.both(lambda store: store.append_message(message))
        for call in CALLS[:2]:
            self._record(call, stored, approver="requester", four_eyes=call == CALLS[1])
        return str(stored.id)

    def _record(self, call: str, message: Message, *, approver: str, four_eyes: bool) -> None:
        record = RecordToolCall(
            id=call,
            provider_call_id=call,
            message_id=message.id,
            thread_id=message.thread_id,
            run_id="run-0",
            actor_ref="ana",
            tenant_ref=None,
            agent_name=None,
            tool_name="refund",
            tool_type="action",
            input={"call": call},
            status="pending_approval",
            approver=approver,
            four_eyes=four_eyes,
            expires_at=self.clock.now + timedelta(seconds=60),
        )
        self.both(lambda store: store.record_tool_call(record))

    @rule(
        call=calls,
        provider_id=st.sampled_from(["p1", "p2", "x" * 256]),
        message=Twins.messages,
        run=st.none() | runs,
        status=statuses | st.just("pending_approval"),
        value=json_values,
        approver=st.sampled_from([None, "requester", "role:lead"]),
        four_eyes=st.booleans(),
        expires=st.sampled_from([None, 0, 30, 3600]),
        tool=st.sampled_from(["find", "find\x00", "t" * 200]),
    )
    def record_call(
        self,
        call: str,
        provider_id: str,
        message: str,
        run: str | None,
        status: str,
        value: Json,
        approver: str | None,
        four_eyes: bool,
        expires: int | None,
        tool: str,
    ) -> None:
        known = self.memory.get_tool_call(call)
        thread = self.memory.thread_of_message(message)
        if known is not None or thread is None:
            return  # ids of calls are ours and new; messages are those of a thread that is there
        record = RecordToolCall(
            id=call,
            provider_call_id=provider_id,
            message_id=message,
            thread_id=thread,
            run_id=run,
            actor_ref="ana",
            tenant_ref=None,
            agent_name="support",
            tool_name=tool,
            tool_type="action",
            input=value,
            output=value,
            status=status,
            approver=approver,
            four_eyes=four_eyes,
            confirmation=None if approver is None else {"title": "Sure?"},
            expires_at=None if expires is None else self.clock.now + timedelta(seconds=expires),
            proposal_id="p" if status == "proposed" else None,
        )
        self.both(lambda store: store.record_tool_call(record))

    @rule(
        call=calls,
        status=st.just(UNSET) | statuses,
        output=st.just(UNSET) | json_values,
        error=st.just(UNSET) | st.none() | texts,
        undo=st.booleans(),
    )
    def update_call(self, call: str, status: Json, output: Json, error: Json, undo: bool) -> None:
        patch = ToolCallPatch(status=status, output=output, error=error)
        self.both(lambda store: store.update_tool_call(call, patch), undo=undo)

    @rule(call=calls, decision=decisions, actor=st.none() | actors, reason=st.none() | texts, remember=st.booleans())
    def decide(self, call: str, decision: str, actor: Actor | None, reason: str | None, remember: bool) -> None:
        asked = ToolDecision(decision=decision, actor=actor, reason=reason, remember=remember, answers={"q": ["a"]})
        self.both(lambda store: store.decide_tool_call(call, asked))

    @rule(limit=limits)
    def expire_calls(self, limit: int) -> None:
        self.both(lambda store: store.expire_tool_calls(self.clock.now, limit))

    @rule(run=runs, error=texts)
    def fail_calls(self, run: str, error: str) -> None:
        self.both(lambda store: store.fail_unsettled_tool_calls(run, error))

    @rule(
        limit=limits,
        tenants=st.sampled_from([None, (), (None,), ("acme", None), ("",)]),
        ref=st.none() | refs,
        thread=st.none() | st.none() | Twins.threads,
    )
    def list_pending(self, limit: int, tenants: Json, ref: str | None, thread: str | None) -> None:
        filters = ApprovalFilter(tenant_refs=tenants, actor_ref=ref, thread_id=thread)
        self.both(lambda store: store.pending_approvals(limit, filters))

    @rule(thread=Twins.threads)
    def remembered(self, thread: str) -> None:
        self.both(lambda store: store.remembered_approvals(thread))

    def compare_everything(self) -> None:
        for call in CALLS:
            self.both(lambda store, key=call: store.get_tool_call(key))  # type: ignore[misc]
            self.both(lambda store, key=call: store.tool_call_approval(key))  # type: ignore[misc]
            self.both(lambda store, key=call: store.run_for_tool_call(key))  # type: ignore[misc]
            self.both(lambda store, key=call: store.owner_of_tool_call(key))  # type: ignore[misc]
            self.both(lambda store, key=call: store.tool_call_input(key))  # type: ignore[misc]
        self.both(lambda store: store.tool_call_outcomes([*CALLS, "nobody"]))
        for thread in self.seen_threads:
            self.both(lambda store, key=thread: store.remembered_approvals(key))  # type: ignore[misc]
        super().compare_everything()
