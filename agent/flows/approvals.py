"""What people decide about blocking calls (spec 07 §4): one way for every channel, and one trail of who and why."""

from __future__ import annotations

from functools import partial
from typing import cast

from agent.conf import agent_settings
from agent.domain.actor import Actor, Owner
from agent.domain.commands import ToolDecision
from agent.domain.decisions import digest_of
from agent.domain.questions import ASK, take
from agent.domain.snapshots import DecisionAnswer, ToolCall
from agent.domain.states import OPEN_TOOL_CALL, TERMINAL_RUN, ToolCallDecision, ToolCallStatus
from agent.errors import (
    AlreadyDecided,
    ApprovalExpired,
    CardChanged,
    IsProposal,
    NotAllowed,
    NotFound,
    NotQuestion,
    RunNotActive,
)
from agent.flows import dispatch, events
from agent.flows.settlement import FAILED
from agent.spi import ApprovalPolicy
from agent.store import get_store
from agent.store.base import AgentStore


def approve(
    actor: Actor,
    call_id: str,
    *,
    digest: str | None = None,
    via: str = "web",
    remember: bool = False,
    overrule: bool = False,
) -> str:
    """Let the call run; a question is answered with its defaults. The same again changes nothing: `unchanged`.

    `overrule` passes the rule of who answers to the approver, which a superuser of the console does; never four eyes.
    Raises `NotFound`, `NotAllowed`, and `Conflict`s: `IsProposal`, `CardChanged`, `AlreadyDecided`, `RunNotActive`,
    `ApprovalExpired`.
    """
    call = decidable(get_store(), actor, call_id, digest=digest, overrule=overrule)
    if call.tool_name == ASK:
        return answer_call(actor, call, {}, via=via)
    return decide(call, ToolDecision(decision=ToolCallDecision.APPROVED, actor=actor, via=via, remember=remember))


def reject(
    actor: Actor,
    call_id: str,
    *,
    reason: str | None = None,
    digest: str | None = None,
    via: str = "web",
    overrule: bool = False,
) -> str:
    """Refuse the call; the reason is told to the model. A question is skipped. As `approve` otherwise."""
    call = decidable(get_store(), actor, call_id, digest=digest, overrule=overrule)
    word = ToolCallDecision.SKIPPED if call.tool_name == ASK else ToolCallDecision.REJECTED
    return decide(call, ToolDecision(decision=word, actor=actor, via=via, reason=reason))


def answer(actor: Actor, call_id: str, answers: object, *, digest: str | None = None, via: str = "web") -> None:
    """Answer the questions of a call: `{question id: [values]}`; one that is left out takes its default.

    Raises as `approve` does, `Invalid` with the fields that are wrong, and `NotQuestion`.
    """
    answer_call(actor, _question(actor, call_id, digest), answers, via=via)


def skip(actor: Actor, call_id: str, *, digest: str | None = None, via: str = "web") -> None:
    """Leave the questions of a call unanswered: the model is told what it has to assume. Raises as `answer` does."""
    decide(_question(actor, call_id, digest), ToolDecision(decision=ToolCallDecision.SKIPPED, actor=actor, via=via))


def expire_due() -> int:
    """Expire what nobody has decided in time, and wake the runs that wait for it; how many. Idempotent."""
    store, found = get_store(), 0
    if "tool_calls" not in store.capabilities:
        return 0
    while _expire_one(store):
        found += 1
    return found


def _expire_one(store: AgentStore) -> bool:
    """Each in a unit of its own, so that no two rows of different runs are ever locked together."""
    with store.atomic():
        expired = store.expire_tool_calls(store.clock(), limit=1)
        for _, run_id in expired:
            wake(store, run_id)
    return bool(expired)


def may_decide(actor: Actor, approver: str | None, scope: Owner) -> bool:
    """Whether the site's policy counts the actor among those who answer to `approver`."""
    policy = cast("ApprovalPolicy", agent_settings().approval_policy)
    return approver is not None and policy.can_decide(actor, approver, scope)


def wake(store: AgentStore, run_id: str | None) -> None:
    """Have the run go on with what it waited for, once this unit is committed."""
    if run_id is not None and store.wake_run(run_id):
        store.on_commit(partial(dispatch.run, run_id))


def answer_call(actor: Actor, call: ToolCall, answers: object, *, via: str) -> str:
    """Answer a question that the actor was found to decide; answers that are wrong leave it open."""
    if call.decision is None:
        answers = _checked(call, answers)
    return decide(call, ToolDecision(decision=ToolCallDecision.ANSWERED, actor=actor, via=via, answers=answers))


def _checked(call: ToolCall, answers: object) -> object:
    take(call.input["questions"], answers)
    return answers


def _question(actor: Actor, call_id: str, digest: str | None) -> ToolCall:
    call = decidable(get_store(), actor, call_id, digest=digest)
    if call.tool_name != ASK:
        raise NotQuestion
    return call


def decide(call: ToolCall, decision: ToolDecision) -> str:
    """One guarded move, and the wake-up of the run that waits for it, in one unit: `applied` or `unchanged`."""
    store = get_store()
    with store.atomic():
        if call.status in OPEN_TOOL_CALL and _is_over(store, call):
            store.fail_unsettled_tool_calls(str(call.run_id), FAILED)  # a card that its run left open
        given = store.decide_tool_call(call.id, decision)
        if given.status == "applied" or (given.status == "expired" and call.decision is None):
            wake(store, given.run_id)
        if given.status == "applied":
            events.call_decided(store, call, decision=str(decision.decision), via=decision.via)
    _refuse_unless_taken(store, call, given)
    return given.status


def decidable(store: AgentStore, actor: Actor, call_id: str, *, digest: str | None, overrule: bool = False) -> ToolCall:
    """The call as the actor may decide it and was shown it."""
    call, owner = store.get_tool_call(call_id), store.owner_of_tool_call(call_id)
    if call is None or owner is None:
        raise NotFound
    answers_to_it = may_decide(actor, call.approver, owner) or (call.approver is None and actor.same_as(owner))
    if not (overrule or answers_to_it):
        raise NotAllowed
    if call.status == ToolCallStatus.PROPOSED:
        raise IsProposal
    if digest is not None and digest != digest_of(call):
        raise CardChanged
    return call


def _is_over(store: AgentStore, call: ToolCall) -> bool:
    if call.run_id is None:
        return False
    run = store.get_run(call.run_id)
    return run is None or run.status in TERMINAL_RUN


def _refuse_unless_taken(store: AgentStore, call: ToolCall, answer: DecisionAnswer) -> None:
    match answer.status:
        case "applied" | "unchanged":
            return
        case "not_found":
            raise NotFound
        case "expired":
            raise ApprovalExpired
        case _ if answer.decision is not None:
            raise AlreadyDecided
        case _:
            raise RunNotActive if _is_over(store, call) else AlreadyDecided("Nobody is asked about this call.")
