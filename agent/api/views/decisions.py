"""What people decide about the calls of an agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rest_framework.request import Request
from rest_framework.response import Response

from agent.api import docs
from agent.api.base import ActorAPIView
from agent.api.bodies import AnswerBody, ApproveBody, DecisionBody, RejectBody
from agent.api.parsing import parse, read_body
from agent.api.shapes import OkShape
from agent.domain.actor import Actor
from agent.flows import approvals

Answer = dict[str, Any]

OK: Final[Answer] = {"ok": True}
REFUSALS: Final[dict[int, docs.Codes]] = {
    400: docs.BODY_CODES,
    404: ("not_found",),
    409: ("already_decided", "run_not_active", "is_proposal", "card_changed"),
    410: ("approval_expired",),
    413: ("too_large",),
    415: ("unsupported_type",),
}


class ApproveView(ActorAPIView):
    @docs.operation(
        "tool_call_approve",
        "Approve a call",
        request=ApproveBody,
        example={"toolCallId": "019a0000-0000-7000-8000-000000000000", "remember": False},
        answers={200: docs.answer(OkShape, "Applied, or decided so before: then nothing changes.")},
        errors=REFUSALS,
    )
    def post(self, request: Request) -> Response:
        """The call runs. Who may decide is up to its approver; they need not own the conversation."""
        return Response(approve(self.actor, parse(ApproveBody, read_body(request))))


class RejectView(ActorAPIView):
    @docs.operation(
        "tool_call_reject",
        "Reject a call",
        request=RejectBody,
        example={"toolCallId": "019a0000-0000-7000-8000-000000000000", "reason": "Not this one."},
        answers={200: docs.answer(OkShape, "Applied, or decided so before: then nothing changes.")},
        errors=REFUSALS,
    )
    def post(self, request: Request) -> Response:
        """The call does not run; the reason is told to the model."""
        return Response(reject(self.actor, parse(RejectBody, read_body(request))))


class AnswerView(ActorAPIView):
    @docs.operation(
        "tool_call_answer",
        "Answer questions",
        request=AnswerBody,
        example={"toolCallId": "019a0000-0000-7000-8000-000000000000", "answers": {"size": ["large"]}},
        answers={200: docs.answer(OkShape)},
        errors={**REFUSALS, 409: (*REFUSALS[409], "is_question")},
    )
    def post(self, request: Request) -> Response:
        """A question that is left out takes its default; values that do not fit leave all of them open."""
        return Response(answer(self.actor, parse(AnswerBody, read_body(request))))


class SkipView(ActorAPIView):
    @docs.operation(
        "tool_call_skip",
        "Skip questions",
        request=DecisionBody,
        answers={200: docs.answer(OkShape)},
        errors={**REFUSALS, 409: (*REFUSALS[409], "is_question")},
    )
    def post(self, request: Request) -> Response:
        """Nobody answers: the model is told what it has to assume."""
        return Response(skip(self.actor, parse(DecisionBody, read_body(request))))


def approve(actor: Actor, values: Mapping[str, Any]) -> Answer:
    """As a parsed body says, from whichever edge; what is answered."""
    approvals.approve(actor, values["toolCallId"], remember=values["remember"], **_shown(values))
    return OK


def reject(actor: Actor, values: Mapping[str, Any]) -> Answer:
    approvals.reject(actor, values["toolCallId"], reason=values.get("reason"), **_shown(values))
    return OK


def answer(actor: Actor, values: Mapping[str, Any]) -> Answer:
    approvals.answer(actor, values["toolCallId"], values["answers"], **_shown(values))
    return OK


def skip(actor: Actor, values: Mapping[str, Any]) -> Answer:
    approvals.skip(actor, values["toolCallId"], **_shown(values))
    return OK


def _shown(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"digest": values.get("digest"), "via": values["via"]}
