"""Talking to an agent, joining its stream, stopping it."""

from __future__ import annotations

from django.http import HttpResponseBase
from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework.request import Request
from rest_framework.response import Response

from agent.api import docs
from agent.api.base import ActorAPIView
from agent.api.bodies import SendBody
from agent.api.parsing import cursor_of, idempotency_key_of, path_id, read_body, request_id_of
from agent.api.sending import send_of
from agent.api.shapes import AbortedShape, QueuedShape, StartedShape, TextDecisionShape
from agent.api.sse import event_stream
from agent.domain.actor import Actor
from agent.errors import NotFound
from agent.flows.admission import Queued, submit
from agent.flows.cancel import cancel
from agent.flows.stream import attach, follow
from agent.flows.text_decisions import Decided


class ChatView(ActorAPIView):
    @docs.operation(
        "chat_send",
        "Send a message",
        request=SendBody,
        example={"message": "Where is order 1042?"},
        answers={
            (200, "text/event-stream"): docs.SSE,
            (200, "application/json"): docs.answer(
                PolymorphicProxySerializer("StartedOrDecided", [StartedShape, TextDecisionShape], None),
                "A repeat whose stream is no longer kept; or the message was a decision about an action proposal.",
            ),
            202: docs.answer(QueuedShape, "The message waits in the conversation's queue, or was started from there."),
        },
        errors={
            400: (
                *docs.BODY_CODES,
                "empty_message",
                "agent_not_found",
                "persona_not_found",
                "model_not_offered",
                "bad_capabilities",
                "regenerate_needs_thread",
                "nothing_to_regenerate",
            ),
            403: ("forbidden", "attachment_forbidden"),
            404: ("not_found",),
            409: ("run_active",),
            413: ("too_large",),
            415: ("unsupported_type",),
            422: ("idempotency_key_reused",),
            429: ("quota_exceeded",),
            501: ("not_supported",),
        },
        parameters=[docs.IDEMPOTENCY_KEY, *docs.STREAM_HEADERS],
    )
    def post(self, request: Request) -> HttpResponseBase:
        """Starts a run and follows it, or lets the message wait. It is stored at once; hanging up stops nothing."""
        key = idempotency_key_of(request)
        outcome = submit(self.actor, send_of(read_body(request), key=key, request_id=request_id_of(request)))
        if isinstance(outcome, Queued):
            return Response(outcome.to_json(), status=202)
        if isinstance(outcome, Decided):
            return Response(outcome.to_json())
        if outcome.replayed and not still_there(self.actor, outcome.run_id):
            return Response({"threadId": outcome.thread_id, "runId": outcome.run_id})
        return event_stream(
            request._request,
            follow(outcome.run_id, 0),
            run_id=outcome.run_id,
            thread_id=outcome.thread_id,
            reconnect=False,
        )


class StreamView(ActorAPIView):
    http_method_names = ["get"]  # a HEAD would follow a run to show nobody

    @docs.operation(
        "chat_stream",
        "Join a run's stream",
        answers={(200, "text/event-stream"): docs.SSE},
        errors={400: ("invalid_body",), 404: ("stream_not_found",)},
        parameters=[docs.AFTER, docs.LAST_EVENT_ID, *docs.STREAM_HEADERS],
    )
    def get(self, request: Request, run_id: str) -> HttpResponseBase:
        """Replays the frames after the cursor, then follows."""
        after = cursor_of(request)
        scope = attach(self.actor, _run_id(run_id))
        return event_stream(
            request._request,
            follow(scope.run_id, after),
            run_id=scope.run_id,
            thread_id=scope.thread_id,
            reconnect=True,
        )


class CancelView(ActorAPIView):
    @docs.operation(
        "chat_cancel",
        "Stop a run",
        answers={200: docs.answer(AbortedShape)},
        errors={404: ("not_found",)},
    )
    def post(self, request: Request, run_id: str) -> Response:
        """Asks an open run to stop; `aborted` is false when it ended by itself meanwhile."""
        return Response({"aborted": cancel(self.actor, path_id(run_id))})


def still_there(actor: Actor, run_id: str) -> bool:
    """Whether the stream of an own run can be joined."""
    try:
        attach(actor, run_id)
    except NotFound:
        return False
    return True


def _run_id(value: str) -> str:
    try:
        return path_id(value)
    except NotFound:
        raise NotFound(code="stream_not_found") from None
