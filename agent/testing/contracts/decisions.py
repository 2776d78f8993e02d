"""The cases of TOOL_CALL_CONTRACT about what people decide (spec 02 §5.3)."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from agent.domain.actor import Actor
from agent.domain.commands import ApprovalFilter, ToolDecision
from agent.errors import NotAllowed
from agent.store.base import AgentStore
from agent.testing.contracts.base import ContractMismatch, expect, same
from agent.testing.contracts.rows import ANA, BO, answer, called_message, new_call, new_thread, waiting_call
from agent.testing.contracts.store import START, StoreSubject, case
from agent.testing.contracts.tool_calls import TOOL_CALL_CONTRACT, stored_call

LEAD = Actor("lead", ("lead",), "acme")


def decide(
    store: AgentStore, decision: str, call_id: str = "call-1", *, by: Actor = ANA, remember: bool = False
) -> str:
    asked = ToolDecision(decision=decision, actor=by, remember=remember)
    return store.decide_tool_call(call_id, asked).status


@case(TOOL_CALL_CONTRACT, "06 of eight racing decisions one is applied", commits=True)
def _racing_decisions(subject: StoreSubject) -> None:
    store = subject.store
    waiting_call(store, called_message(store, held_by="run-1"))
    asked = [partial(decide, store, decision, by=LEAD) for decision in ["approved", "rejected"] * 4]
    answers = subject.parallel(asked)
    same(sorted(answers), ["applied", *["conflict"] * 4, *["unchanged"] * 3], "answers")
    same(stored_call(store).decision, ["approved", "rejected"][answers.index("applied") % 2], "the decision")


@case(TOOL_CALL_CONTRACT, "07 the same decision later is unchanged and alters nothing")
def _unchanged(subject: StoreSubject) -> None:
    store = subject.store
    waiting_call(store, called_message(store, held_by="run-1"))
    asked = ToolDecision(decision="approved", actor=LEAD, via="admin", reason="r" * 5000, remember=True)
    given = store.decide_tool_call("call-1", asked)
    same((given.status, given.run_id, given.decision), ("applied", "run-1", "approved"), "the answer")
    before = stored_call(store)
    same((before.status, before.decision_reason), ("pending_approval", "r" * 4096), "waits for its run")
    subject.clock.advance(5)
    same([decide(store, "approved"), decide(store, "rejected")], ["unchanged", "conflict"], "later ones")
    same(stored_call(store), before, "the row")
    same(decide(store, "approved", "nobody"), "not_found", "an unknown call")


@case(TOOL_CALL_CONTRACT, "07b a decision settles the row where nothing is left to run")
def _settling(subject: StoreSubject) -> None:
    store = subject.store
    message = called_message(store)
    settled = {"rejected": "rejected", "skipped": "rejected", "answered": "executed"}
    for decision, status in settled.items():
        waiting_call(store, message, decision, tool_name="ask")
        asked = ToolDecision(decision=decision, actor=ANA, answers={"q": ["a"]})
        same(store.decide_tool_call(decision, asked).status, "applied", decision)
        call = stored_call(store, decision)
        same((call.status, call.settled_at, call.answers), (status, START, {"q": ["a"]}), decision)
        same(call.executed_at, START if status == "executed" else None, decision)
    waiting_call(store, message, "proposed", status="proposed", proposal_id="p1")
    new_call(store, message, "running")
    same([decide(store, "approved", call) for call in ("proposed", "running")], ["conflict", "conflict"], "others")


@case(TOOL_CALL_CONTRACT, "07c under four eyes the requester decides nothing")
def _four_eyes(subject: StoreSubject) -> None:
    store = subject.store
    waiting_call(store, called_message(store), four_eyes=True, approver="shop.refund")
    before = stored_call(store)
    try:
        decide(store, "approved", by=ANA)
    except NotAllowed:
        same(stored_call(store), before, "the row")
        same(decide(store, "approved", by=LEAD), "applied", "somebody else")
        return
    raise ContractMismatch("the requester decided their own call")


@case(TOOL_CALL_CONTRACT, "08 at exactly its deadline an approval answers expired, and the row is")
def _deadline(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    message = called_message(store)
    for call_id in ("late", "early"):
        waiting_call(store, message, call_id, expires_at=START + timedelta(seconds=10))
    clock.advance(9.999999)
    same(decide(store, "expired", "early"), "conflict", "nothing expires early")
    same(decide(store, "approved", "early"), "applied", "a microsecond before it")
    clock.advance(0.000001)
    same([decide(store, "approved", "late") for _ in range(2)], ["expired", "expired"], "at it, and again")
    call = stored_call(store, "late")
    seen = (call.status, call.decision, call.decided_via, call.executed_by_ref, call.settled_at, call.decided_at)
    same(seen, ("expired", "expired", "expiry", None, clock.now, clock.now), "the row")
    same(stored_call(store, "early").status, "pending_approval", "what was approved in time")


@case(TOOL_CALL_CONTRACT, "08b overdue approvals are expired in the order of their deadlines, up to a limit")
def _expiry(subject: StoreSubject) -> None:
    store = subject.store
    message = called_message(store)
    for call_id, seconds in (("c", 3), ("a", 1), ("b", 2), ("later", 60)):
        waiting_call(store, message, call_id, expires_at=START + timedelta(seconds=seconds))
    waiting_call(store, message, "never")
    waiting_call(store, message, "decided", expires_at=START)
    store.decide_tool_call("decided", ToolDecision(decision="expired", actor=None))
    same(store.expire_tool_calls(START, limit=2), [], "nothing is due yet")
    now = subject.clock.advance(3)
    batches = [store.expire_tool_calls(now, limit=2) for _ in range(3)]
    same(batches, [[("a", "run-1"), ("b", "run-1")], [("c", "run-1")], []], "expired, the last at its very deadline")
    same(store.expire_tool_calls(now + timedelta(days=1), limit=0), [], "limit 0")
    same([stored_call(store, call_id).status for call_id in ("a", "later")], ["expired", "pending_approval"], "rows")


@case(TOOL_CALL_CONTRACT, "10 only a positive decision is remembered, in its own thread")
def _remembered(subject: StoreSubject) -> None:
    store = subject.store
    message = called_message(store)
    decisions = [("yes", "approved", True), ("no", "rejected", True), ("once", "approved", False)]
    for tool, decision, remember in decisions:
        waiting_call(store, message, tool, tool_name=tool)
        decide(store, decision, tool, remember=remember)
    same(store.remembered_approvals(message.thread_id), {"yes"}, "this thread")
    waiting_call(store, message, "led", tool_name="led", approver="role:lead")
    decide(store, "approved", "led", by=LEAD, remember=True)
    same(store.remembered_approvals(message.thread_id), {"yes", "led"}, "whoever was asked")
    same(store.remembered_approvals(message.thread_id, approver="role:lead"), {"led"}, "of this approver alone")
    same(store.remembered_approvals(message.thread_id, approver="role:Lead"), set(), "exactly this approver")
    same(store.remembered_approvals(called_message(store).thread_id), set(), "another thread")


@case(TOOL_CALL_CONTRACT, "13 what waits for a person is listed oldest first, as the filters say")
def _inbox(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    mine = called_message(store)
    theirs = answer(store, new_thread(store, BO))
    for call_id, message in (("a", mine), ("b", theirs), ("c", mine)):
        waiting_call(store, message, call_id, tool_name=f"tool-{call_id}")
        clock.advance(1)
    new_call(store, mine, "running")
    waiting_call(store, mine, "decided")
    decide(store, "approved", "decided")

    def listed(filters: ApprovalFilter | None = None, limit: int = 10) -> list[str]:
        return [item.tool_call.id for item in store.pending_approvals(limit, filters)]

    same([listed(), listed(limit=2), listed(limit=0)], [["a", "b", "c"], ["a", "b"], []], "all")
    same(listed(ApprovalFilter(tenant_refs=("acme",))), ["a", "c"], "by tenant")
    same(listed(ApprovalFilter(tenant_refs=(None, "x"))), ["b"], "by no tenant")
    same(listed(ApprovalFilter(tenant_refs=())), [], "by none")
    same(listed(ApprovalFilter(actor_ref="bo", tool_name="tool-b")), ["b"], "by actor and tool")
    same(listed(ApprovalFilter(thread_id=mine.thread_id)), ["a", "c"], "by thread")
    [item] = store.pending_approvals(1)
    same((item.thread_title, item.owner), ("New chat", {"ref": "ana", "tenant_ref": "acme"}), "beside the call")
    same(item.tool_call, stored_call(store, "a"), "the call")
    store.soft_delete_thread(mine.thread_id)
    same(listed(), ["b"], "not of deleted threads")


@case(TOOL_CALL_CONTRACT, "14 a message lists the approvals of its calls when the thread is read again")
def _approvals(subject: StoreSubject) -> None:
    store = subject.store
    message = called_message(store)
    new_call(store, message, "a read")
    waiting_call(store, message, "b", expires_at=START, confirmation={"title": "Cancel?"}, input={"n": 1})
    waiting_call(store, message, "c", approver="role:lead", four_eyes=True)
    decide(store, "approved", "c", by=LEAD)
    detail = store.get_thread(message.thread_id)
    [first, second] = (detail.messages[0].approvals if detail else None) or [{}, {}]
    digests = first.pop("digest"), second.pop("digest")
    expect(len(set(digests)) == 2 and all(len(digest) == 64 for digest in digests), "digests")
    card = {"id": "b", "status": "pending", "approver": "requester", "confirmation": {"title": "Cancel?"}}
    same(first, {**card, "expiresAt": "2026-03-01T12:00:00.123Z"}, "an open card")
    decided = {"fourEyes": True, "decidedBy": "lead", "decidedVia": "web"}
    same(second, {"id": "c", "status": "approved", "approver": "role:lead", **decided}, "a decided card")


@case(TOOL_CALL_CONTRACT, "15 what a decision is judged by reads back, with the thread's owner")
def _approval(subject: StoreSubject) -> None:
    store = subject.store
    message = called_message(store)
    waiting_call(store, message, expires_at=START)
    approval = store.tool_call_approval("call-1")
    wanted = {
        "id": "call-1",
        "status": "pending_approval",
        "approver": "requester",
        "four_eyes": False,
        "expires_at": START,
        "decision": None,
        "proposal_id": None,
        "run_id": "run-1",
        "thread_id": message.thread_id,
        "tool_name": "find",
        "scope": {"ref": "ana", "tenant_ref": "acme"},
    }
    same(approval, wanted, "tool_call_approval")
    decide(store, "rejected", by=LEAD)
    decided = store.tool_call_approval("call-1")
    same(decided and (decided.status, decided.decision), ("expired", "expired"), "once it was too late")
    same([store.tool_call_approval("nobody"), store.owner_of_tool_call("nobody")], [None, None], "an unknown call")
