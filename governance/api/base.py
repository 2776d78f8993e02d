"""A view of the console's API: a signed-in user of the site with the permission that the view names."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.authentication import SessionAuthentication
from rest_framework.request import Request
from rest_framework.response import Response

from agent.actors import DjangoUserResolver, actor_of
from agent.api.base import ActorAPIView, known_by_cookie
from agent.api.docs import SENTENCES
from agent.api.shapes import ErrorShape
from agent.errors import Invalid, NotAllowed, NotAuthenticated
from governance.export import Export, csv_response
from governance.permissions import EXPORT, hidden_costs
from governance.wire import to_json

F = TypeVar("F", bound=Callable[..., Any])

REPORTS: Final = 4  # at a time in a process

_TEXT: Final = {"type": "string", "maxLength": 255}
_DAY: Final = {"type": "string", "format": "date"}
RANGE: Final = tuple(
    OpenApiParameter(name, _DAY, OpenApiParameter.QUERY, description=sentence)
    for name, sentence in (
        ("fromDay", "First day, in the reporting time zone; 29 days before the last by default."),
        ("toDay", "Last day, inclusive; today by default."),
    )
)
FILTERS: Final = tuple(
    OpenApiParameter(name, _TEXT, OpenApiParameter.QUERY, description="Exact; `(none)` for rows without one.")
    for name in ("tenantRef", "agent", "model", "actor", "purpose")
)
_WHOLE: Final = {"type": "integer", "minimum": 1}
LIMIT: Final = OpenApiParameter("limit", _WHOLE, OpenApiParameter.QUERY, description="More than 200 becomes 200.")
PAGING: Final = (
    OpenApiParameter("page", _WHOLE, OpenApiParameter.QUERY, description="Up to row 10,000; then a cursor is needed."),
    LIMIT,
    OpenApiParameter("cursor", {"type": "string"}, OpenApiParameter.QUERY, description="The nextCursor of a page."),
)
CSV: Final = OpenApiParameter(
    "format",
    {"type": "string", "enum": ["json", "csv"]},
    OpenApiParameter.QUERY,
    description=f"`csv`: every row as a file; with the permission {EXPORT}.",
)


class ConsoleView(ActorAPIView):
    """Known by any authentication of REST framework; who lacks the permission is refused before anything is read."""

    needs: ClassVar[tuple[str, ...]] = ()  # one of them is enough
    slots = threading.BoundedSemaphore(REPORTS)  # of their own: slow reports hold no conversation up

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        request.accepted_renderer, request.accepted_media_type = self.perform_content_negotiation(request)
        request.version, request.versioning_scheme = None, None
        self.perform_authentication(request)
        actor = actor_of(request.user)
        if actor is None:
            raise NotAuthenticated
        if known_by_cookie(request, DjangoUserResolver()):
            SessionAuthentication().enforce_csrf(request)
        self.actor = actor
        self.check_permissions(request)
        self.check_throttles(request)
        if not any(request.user.has_perm(name) for name in self.needed(request)):
            raise NotAllowed

    def needed(self, request: Request) -> tuple[str, ...]:
        return self.needs

    def rows_or_csv(
        self,
        request: Request,
        name: str,
        kind: type,
        rows: Callable[[], Sequence[Any]],
        **more: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401  (an answer, or a stream)
        """A list, or the same as a file."""
        if wants_csv(request):
            return self.csv(request, name, kind, more.get("every", rows)())
        return Response(to_json(rows(), without=hidden_costs(request._request)))

    def csv(self, request: Request, name: str, kind: type, rows: Iterable[Any]) -> Any:  # noqa: ANN401
        if not request.user.has_perm(EXPORT):
            raise NotAllowed
        export = Export(by=self.actor.ref, screen=name, asked=request._request.META.get("QUERY_STRING", "") or "all")
        return csv_response(request._request, export, kind, rows, without=hidden_costs(request._request))


def wants_csv(request: Request) -> bool:
    wanted = request.query_params.get("format", "json")
    if wanted not in {"json", "csv"}:
        raise Invalid.field("format", "json or csv")
    return wanted == "csv"


def operation(
    name: str,
    summary: str,
    *,
    needs: tuple[str, ...],
    answer: Mapping[str, Any],
    status: int = 200,
    errors: Mapping[int, str] | None = None,
    parameters: Sequence[OpenApiParameter] = (),
    request: Any = None,  # noqa: ANN401  (a serializer)
    rows: bool = True,
) -> Callable[[F], F]:
    """Describe a handler with the permission that opens it."""
    told = {400: "", 401: "", 403: "", 500: "", **(errors or {})}
    responses: dict[Any, Any] = {
        code: OpenApiResponse(response=ErrorShape, description=sentence or SENTENCES[code])
        for code, sentence in told.items()
    }
    opens = " or ".join(f"`{each}`" for each in needs)
    responses[status, "application/json"] = OpenApiResponse(response=dict(answer), description=f"Needs {opens}.")
    if rows:
        responses[status, "text/csv"] = OpenApiResponse(response=OpenApiTypes.STR, description=f"Needs `{EXPORT}` too.")
    describe = extend_schema(
        operation_id=f"governance_{name}",
        summary=summary,
        description=f"Permission: {opens}.",
        tags=["governance"],
        request=request,
        responses=responses,
        parameters=[*parameters, *([CSV] if rows else [])],
    )

    def decorate(handler: F) -> F:
        handler.kwargs = {"schema": AutoSchema}  # type: ignore[attr-defined]  # whatever the host's default is
        return describe(handler)

    return decorate
