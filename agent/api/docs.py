"""How an operation is described in the OpenAPI document: what it takes, every answer, every error code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.serializers import BaseSerializer

from agent.api.parsing import NUMBER_MAX
from agent.api.shapes import ErrorShape

F = TypeVar("F", bound=Callable[..., Any])
Codes = tuple[str, ...]
Key = int | tuple[int, str]

BODY_CODES: Final[Codes] = ("invalid_body",)
SENTENCES: Final[Mapping[int, str]] = {
    400: "A field, a query parameter or a header is not valid.",
    401: "Nobody is signed in.",
    403: "It is another's, not open to this actor, or the CSRF token is missing.",
    404: "Nothing of that name is there.",
    409: "The state does not allow it now.",
    410: "It was there, and its time is over.",
    413: "The body is larger than 1 MiB, or the file than is taken.",
    415: "The body, or the file in it, is of a kind that is not taken.",
    422: "The Idempotency-Key was used for another body, or the bytes do not fit the upload.",
    429: "A limit is reached: a quota, with its code, or the site's own throttle, without one.",
    500: "A fault on our side; the message names its reference in the log.",
    501: "This installation does not support that.",
}
EVERYWHERE: Final[Mapping[int, Codes]] = {401: ("not_authenticated",), 403: ("forbidden",), 429: (), 500: ()}

EVENT: Final = {
    "type": "object",
    "description": "One event of the stream.",
    "properties": {
        "event": {
            "type": "string",
            "enum": ["meta", "message", "done", "error"],
            "description": "Absent on frames, which are then `message` to an EventSource.",
        },
        "id": {"type": "string", "pattern": "^[1-9][0-9]*$", "description": "On frames alone: their number."},
        "data": {
            "type": "string",
            "description": "JSON: of `meta` {runId, threadId?}, of a frame {kind, ...}, of `error` {code, message}.",
        },
    },
    "required": ["data"],
    "additionalProperties": False,
}
SSE: Final = OpenApiResponse(
    response=EVENT,
    description=(
        "Events: `meta` first with `{runId, threadId}`; each frame un-named, as one JSON object under its number as "
        "`id`; `done` last with `{}`, or `error` with `{code, message}`; the comment `: ping` in silences. "
        "A stream that ends without `done` or `error` is to be joined again after the last id."
    ),
)
JSON_OBJECT: Final = OpenApiResponse(response=OpenApiTypes.OBJECT)
STREAM_HEADERS: Final = tuple(
    OpenApiParameter(
        name,
        OpenApiTypes.STR,
        OpenApiParameter.HEADER,
        description=sentence,
        response=[200],
    )
    for name, sentence in (
        ("X-Agent-Run-Id", "The run that is followed."),
        ("X-Agent-Thread-Id", "The conversation it answers."),
    )
)
IDEMPOTENCY_KEY: Final = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]{1,200}$"},
    OpenApiParameter.HEADER,
    description="A repeat with the same body answers the first outcome and stores nothing; kept for 24 hours.",
)
_CURSOR: Final = {"type": "integer", "minimum": 0, "maximum": NUMBER_MAX}
AFTER: Final = OpenApiParameter(
    "after", _CURSOR, OpenApiParameter.QUERY, description="The last id that the client has. Wins over the header."
)
LAST_EVENT_ID: Final = OpenApiParameter(
    "Last-Event-ID", _CURSOR, OpenApiParameter.HEADER, description="What an EventSource sends by itself."
)
_NAME: Final = {"type": "string", "minLength": 1, "maxLength": 255}
ONE_AGENT: Final = OpenApiParameter(
    "agent", _NAME, OpenApiParameter.QUERY, description="The name of an agent; absent: the one that a new thread has."
)
AGENT_OR_ALL: Final = OpenApiParameter(
    "agent", _NAME, OpenApiParameter.QUERY, description="The name of an agent, or `*` for all together."
)


def limit(*, default: int, maximum: int) -> OpenApiParameter:
    schema = {"type": "integer", "minimum": 1, "default": default}
    return OpenApiParameter(
        "limit", schema, OpenApiParameter.QUERY, description=f"More than {maximum} becomes {maximum}."
    )


def answer(shape: type[BaseSerializer[Any]] | BaseSerializer[Any], sentence: str = "") -> OpenApiResponse:
    return OpenApiResponse(response=shape, description=sentence)


def operation(
    name: str,
    summary: str,
    *,
    answers: Mapping[Key, OpenApiResponse],
    errors: Mapping[int, Codes],
    request: type[BaseSerializer[Any]] | Mapping[str, Any] | None = None,
    parameters: Sequence[OpenApiParameter] = (),
    example: Mapping[str, object] | None = None,
) -> Callable[[F], F]:
    """Describe a handler; the errors of every route are added to its own."""
    codes = {**EVERYWHERE, **errors}
    responses: dict[Key, OpenApiResponse] = {**answers, **{status: _error(status, codes[status]) for status in codes}}
    describe = extend_schema(
        operation_id=name,
        summary=summary,
        tags=["agent"],
        request=request,
        responses=responses,
        parameters=list(parameters),
        examples=[OpenApiExample("example", value=dict(example), request_only=True)] if example else None,
    )

    def decorate(handler: F) -> F:
        handler.kwargs = {"schema": AutoSchema}  # type: ignore[attr-defined]  # whatever the host's default is
        return describe(handler)

    return decorate


def _error(status: int, codes: Codes) -> OpenApiResponse:
    named = f" Codes: {', '.join(f'`{code}`' for code in codes)}." if codes else ""
    return OpenApiResponse(response=ErrorShape, description=SENTENCES[status] + named)
