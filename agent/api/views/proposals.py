"""What people decide about action proposals: the list of a conversation, and one decision."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from agent.api import docs
from agent.api.base import ActorAPIView
from agent.api.bodies import ApproveProposalBody, RejectProposalBody
from agent.api.parsing import parse, path_id, proposal_cursor_of, read_body
from agent.api.shapes import ProposalDecisionShape, ProposalShape
from agent.domain.actor import Actor
from agent.domain.proposal_json import wire
from agent.domain.proposals import ProposalAnswer
from agent.flows import proposals

Answer = dict[str, Any]

NEXT: Final = "X-Action-Proposals-Next"
AFTER: Final = OpenApiParameter(
    "after", OpenApiTypes.STR, OpenApiParameter.QUERY, description=f"The cursor of `{NEXT}`: JSON `{{createdAt, id}}`."
)
NEXT_HEADER: Final = OpenApiParameter(
    NEXT,
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="The URI-encoded cursor of the next page; absent on the last.",
    response=[200],
)
REFUSALS: Final[dict[int, docs.Codes]] = {
    400: docs.BODY_CODES,
    404: ("not_found",),
    409: ("card_changed",),
    413: ("too_large",),
    415: ("unsupported_type",),
    501: ("not_supported",),
}
STANDS: Final = "Applied, or how it stands: unchanged, conflict, expired."


class ProposalListView(ActorAPIView):
    @docs.operation(
        "action_proposals_list",
        "List a conversation's proposals",
        answers={200: docs.answer(ProposalShape(many=True))},
        errors={400: ("invalid_body",), 404: ("not_found",)},
        parameters=[AFTER, NEXT_HEADER],
    )
    def get(self, request: Request, thread_id: str) -> Response:
        """Oldest first, up to 1000: all for the owner, for others those that they may decide."""
        page = proposals.page(self.actor, path_id(thread_id), after=proposal_cursor_of(request))
        response = Response([wire(each) for each in page.items])
        if page.next is not None:
            cursor = json.dumps({"createdAt": page.next.created_at, "id": page.next.id})
            response[NEXT] = quote(cursor)
            response["Access-Control-Expose-Headers"] = NEXT
        return response


class ProposalApproveView(ActorAPIView):
    @docs.operation(
        "action_proposal_approve",
        "Approve a proposal",
        request=ApproveProposalBody,
        example={"remember": False},
        answers={200: docs.answer(ProposalDecisionShape, STANDS)},
        errors=REFUSALS,
    )
    def post(self, request: Request, thread_id: str, proposal_id: str) -> Response:
        """A worker carries it out, as who asked is today. Who may decide is up to its approver."""
        values = parse(ApproveProposalBody, read_body(request))
        return Response(approve(self.actor, {**values, **_named(thread_id, proposal_id)}))


class ProposalRejectView(ActorAPIView):
    @docs.operation(
        "action_proposal_reject",
        "Reject a proposal",
        request=RejectProposalBody,
        example={"reason": "Not this one."},
        answers={200: docs.answer(ProposalDecisionShape, STANDS)},
        errors=REFUSALS,
    )
    def post(self, request: Request, thread_id: str, proposal_id: str) -> Response:
        """It is not carried out, and the conversation is told so with the reason."""
        values = parse(RejectProposalBody, read_body(request))
        return Response(reject(self.actor, {**values, **_named(thread_id, proposal_id)}))


def approve(actor: Actor, values: Mapping[str, Any]) -> Answer:
    """As a parsed body says, from whichever edge; what is answered."""
    return _told(proposals.approve(actor, values["proposalId"], remember=values["remember"], **_shown(values)))


def reject(actor: Actor, values: Mapping[str, Any]) -> Answer:
    return _told(proposals.reject(actor, values["proposalId"], reason=values.get("reason"), **_shown(values)))


def _named(thread_id: str, proposal_id: str) -> dict[str, str]:
    return {"threadId": path_id(thread_id), "proposalId": path_id(proposal_id)}


def _shown(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"thread_id": values["threadId"], "digest": values.get("digest")}


def _told(answer: ProposalAnswer) -> Answer:
    proposal = {} if answer.proposal is None else {"proposal": wire(answer.proposal)}
    return {"status": answer.status.value, **proposal}
