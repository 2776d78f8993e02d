"""What a proposal, a page, a lease and a settlement may be: `Invalid` names the field, before any row is looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agent.domain.canonical import canonical_json
from agent.domain.commands import UNSET
from agent.domain.decisions import REASON_MAX
from agent.domain.proposal_moves import COMMANDS, RESOLVED
from agent.domain.proposals import Decider, NewProposal, ProposalScope, Settlement
from agent.domain.states import Decision
from agent.errors import Invalid

REF_MAX = 255
VIA_MAX = 64
PAGE_MAX = 1000
ON_LOST = ("retry", "hold")
MAX_DEPTH = 200


def check_creation(asked: NewProposal) -> None:
    """Every part of a creation, whatever a caller put into it."""
    if type(asked) is not NewProposal:
        raise Invalid.field("proposal", "a NewProposal")
    check_scope(asked.scope)
    for name in ("id", "origin_run_id", "origin_message_id", "origin_tool_call_id", "tool_name", "approver"):
        check_ref(name, getattr(asked, name))
    _check_text("idempotency_key", asked.idempotency_key, 2 * REF_MAX + 1)
    if not isinstance(asked.replacement_key, str | None):
        raise Invalid.field("replacement_key", "text, or None")
    if asked.expires_at is not None and type(asked.expires_at) is not int:
        raise Invalid.field("expires_at", "epoch milliseconds, or None")
    if type(asked.four_eyes) is not bool:
        raise Invalid.field("four_eyes", "True or False")
    if asked.on_lost not in ON_LOST:
        raise Invalid.field("on_lost", "retry or hold")
    _check_json("input", asked.input)
    _check_json("preparation_input", None if asked.preparation_input is UNSET else asked.preparation_input)
    if asked.confirmation is not None and not isinstance(asked.confirmation, dict):
        raise Invalid.field("confirmation", "an object, or None")
    _check_json("confirmation", asked.confirmation)
    check_context(asked.execution_context)


def check_scope(scope: ProposalScope) -> None:
    if type(scope) is not ProposalScope:
        raise Invalid.field("scope", "a ProposalScope")
    check_ref("actor_ref", scope.actor_ref)
    check_ref("thread_id", scope.thread_id)
    if scope.tenant_ref != "" and scope.tenant_ref is not None:
        check_ref("tenant_ref", scope.tenant_ref)


def check_ref(name: str, value: object) -> None:
    _check_text(name, value, REF_MAX)


def check_context(context: object) -> None:
    """The recorded context: `requestId`, and what else it may hold; roles, actor, tenant and host are never kept."""
    if not isinstance(context, dict):
        raise Invalid.field("execution_context", "an object")
    if "requestId" not in context:
        raise Invalid.field("execution_context", "requestId is required")
    for name, value in context.items():
        rule = _CONTEXT.get(name) if isinstance(name, str) else None
        if rule is None:
            raise Invalid.field("execution_context", f"only {', '.join(_CONTEXT)}")
        if not rule(value):
            raise Invalid.field("execution_context", f"{name} is not valid")
    _check_json("execution_context", context)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= REF_MAX


_CONTEXT: Mapping[str, Callable[[object], bool]] = {
    "requestId": _is_name,
    "agentName": _is_name,
    "persona": _is_name,
    "pageContext": lambda value: isinstance(value, dict),
    "uiCapabilities": lambda value: isinstance(value, dict),
}


def check_command(command: object, by: Decider) -> Decision:
    """The decision that is commanded; a replacement supersedes, nobody else does."""
    if command not in {each.value for each in COMMANDS} or not isinstance(command, str):
        raise Invalid.field("decision", f"one of {', '.join(COMMANDS)}")
    check_decider(by)
    return Decision(command)


def check_decider(by: Decider) -> None:
    _check_text("via", by.via, VIA_MAX)
    if by.reason:
        _check_text("reason", by.reason, REASON_MAX)


def check_settlement(end: Settlement) -> None:
    if type(end) is not Settlement or end.status not in RESOLVED:
        raise Invalid.field("result", f"a Settlement that {' or '.join(RESOLVED)}")
    succeeded = end.status == RESOLVED[0]
    if succeeded == (end.error is not None) or (not succeeded and end.result is not UNSET):
        raise Invalid.field("result", "succeeded has a result and no error, failed an error and no result")
    if end.error is not None and not isinstance(end.error, str):
        raise Invalid.field("error", "text")
    _check_json("result", None if end.result is UNSET else end.result)


def check_page(limit: object, decision: object) -> None:
    if type(limit) is not int or not 1 <= limit <= PAGE_MAX:
        raise Invalid.field("limit", f"a whole number from 1 to {PAGE_MAX}")
    if decision is not None and decision not in {each.value for each in Decision}:
        raise Invalid.field("decision", f"one of {', '.join(Decision)}")


def check_limit(limit: object) -> None:
    check_page(limit, None)


def check_lease(lease_ms: object, worker_id: object = "worker") -> None:
    if type(lease_ms) is not int or lease_ms < 1:
        raise Invalid.field("lease_ms", "whole milliseconds above 0")
    check_ref("worker_id", worker_id)


def _check_text(name: str, value: object, most: int) -> None:
    if not isinstance(value, str) or not 1 <= len(value) <= most:
        raise Invalid.field(name, f"1 to {most} characters")


def _check_json(name: str, value: Any) -> None:  # noqa: ANN401 - whatever a caller took for JSON
    _refuse_other_types(name, value, depth=0)
    try:
        canonical_json(value)
    except Invalid as error:
        raise Invalid.field(name, error.message) from error


def _refuse_other_types(name: str, value: object, *, depth: int) -> None:
    """Plain objects and lists only: a tuple or a subclass would read back as something else."""
    if depth > MAX_DEPTH:
        raise Invalid.field(name, "nested too deeply, or it contains itself")
    if type(value) is dict:
        for item in value.values():
            _refuse_other_types(name, item, depth=depth + 1)
    elif type(value) is list:
        for item in value:
            _refuse_other_types(name, item, depth=depth + 1)
    elif type(value) not in _SCALARS:
        raise Invalid.field(name, f"JSON values only, not {type(value).__name__}")


_SCALARS = {str, int, float, bool, type(None)}
