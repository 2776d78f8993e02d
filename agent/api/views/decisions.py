"""What people decide about the calls of an agent."""

from __future__ import annotations

from typing import Any, Final

from rest_framework.request import Request
from rest_framework.response import Response

from agent.api import docs
from agent.api.base import ActorAPIView
from agent.api.bodies import ApproveBody, RejectBody
from agent.api.parsing import parse, read_body
from agent.api.shapes import OkShape
from agent.flows import approvals

OK: Final = {"ok": True}
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
        values = parse(ApproveBody, read_body(request))
        approvals.approve(self.actor, values["toolCallId"], remember=values["remember"], **_shown(values))
        return Response(OK)


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
        values = parse(RejectBody, read_body(request))
        approvals.reject(self.actor, values["toolCallId"], reason=values.get("reason"), **_shown(values))
        return Response(OK)


def _shown(values: dict[str, Any]) -> dict[str, Any]:
    return {"digest": values.get("digest"), "via": values["via"]}
