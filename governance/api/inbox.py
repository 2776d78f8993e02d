"""What waits for a decision, for the person who asks; what was decided; and deciding."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from django.http import HttpRequest
from rest_framework.request import Request
from rest_framework.response import Response

from agent.api.bodies import DIGEST_MAX, Flag, StrictBody, Text
from agent.api.parsing import parse, path_id, read_body
from agent.domain.decisions import REASON_MAX
from governance import queries
from governance.api.base import ConsoleView, operation
from governance.api.views import Query, latest_view, page_view
from governance.inbox import Desk, Ruling
from governance.permissions import DECIDE, INBOX
from governance.queries import records
from governance.queries.selection import Selection

VIA = "api"


class RulingBody(StrictBody):
    """`digest` is that of the card that was shown; with another than the row's nothing is decided."""

    approved = Flag()
    reason = Text(required=False, allow_null=True, max_length=REASON_MAX)
    remember = Flag(required=False, default=False)
    digest = Text(required=False, allow_null=True, max_length=DIGEST_MAX)


class ApprovalView(ConsoleView):
    needs = (DECIDE,)

    @operation(
        "approval_decide",
        "Decide what waits",
        needs=needs,
        answer={},
        status=204,
        errors={
            404: "",
            409: "Another decision stands, the card is another one now (`card_changed`), or the run is over.",
            410: "The time to decide is over.",
            413: "",
            415: "",
            501: "The store keeps no proposals.",
        },
        request=RulingBody,
        rows=False,
    )
    def post(self, request: Request, subject: str) -> Response:
        """The id is that of a call or of a proposal; the same decision again is answered alike and changes nothing."""
        body = parse(RulingBody, read_body(request))
        desk = Desk.of(request._request)
        ruling = Ruling(
            subject=path_id(subject),
            via=VIA,
            digest=body.get("digest"),
            reason=body.get("reason"),
            remember=body["remember"],
        )
        (desk.approve if body["approved"] else desk.reject)(ruling)
        return Response(status=204)


def waiting_for(request: HttpRequest, query: Query) -> Query:
    """What waits, in this person's tenants, each with whether they may decide it."""
    desk = Desk.of(request)
    return partial(_seen, desk, partial(query, owner=desk.owner, decidable=desk.may))


def seen_by(request: HttpRequest, query: Query) -> Query:
    return partial(_seen, Desk.of(request), query)


def _seen(desk: Desk, query: Query, selection: Selection, *rest: object) -> object:
    return query(desk.seen(selection), *rest)


TABLES: Mapping[str, type[ConsoleView]] = {
    "approvals": latest_view(
        "approvals", "What waits for a decision", queries.pending_approvals, records.ApprovalRow, (INBOX,), waiting_for
    ),
    "approvals-page": page_view(
        "approvals-page", "Waiting decisions", queries.approvals_page, records.ApprovalRow, (INBOX,), waiting_for
    ),
    "decisions-page": page_view(
        "decisions-page", "What was decided", queries.decisions_page, records.DecisionRow, (INBOX,), seen_by
    ),
}
