"""What happens now, as server-sent events."""

from __future__ import annotations

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request

from agent.admin.scope import scope_of
from agent.api.docs import SENTENCES
from agent.api.shapes import ErrorShape
from agent.api.sse import stream_response
from agent.errors import NotSupported
from governance.api.base import ConsoleView
from governance.permissions import RELIABILITY
from governance.tail import event_parts

NEWS = {
    "type": "object",
    "properties": {
        "event": {"type": "string"},
        "ts": {"type": "string", "format": "date-time"},
        "payload": {"type": "object"},
    },
    "required": ["event", "ts", "payload"],
}
NO_STREAM = "The server cannot keep a stream open (WSGI)."


class StreamView(ConsoleView):
    http_method_names = ["get"]  # a HEAD would watch for nobody
    needs = (RELIABILITY,)

    @extend_schema(
        operation_id="governance_stream",
        summary="What happens now",
        description=f"Permission: `{RELIABILITY}`.",
        tags=["governance"],
        responses={
            (200, "text/event-stream"): OpenApiResponse(
                response=NEWS,
                description="`open` first; then `news`, each `{event, ts, payload}`; the comment `: ping` in silences.",
            ),
            **{code: OpenApiResponse(response=ErrorShape, description=SENTENCES[code]) for code in (401, 403, 500)},
            501: OpenApiResponse(response=ErrorShape, description=NO_STREAM),
        },
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Events of the tenants that the asker may see: ids and counts, never text."""
        if not isinstance(request._request, ASGIRequest):
            raise NotSupported(NO_STREAM)
        return stream_response(request._request, event_parts(scope_of(request._request)))
