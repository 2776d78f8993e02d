"""Conversations: list, read, change, copy, cut, rate."""

from __future__ import annotations

from typing import Any, Final

from rest_framework.request import Request
from rest_framework.response import Response

from agent.api import docs, wire
from agent.api.base import ActorAPIView
from agent.api.bodies import FeedbackBody, ThreadPatchBody
from agent.api.parsing import limit_of, parse, path_id, read_body
from agent.api.shapes import FeedbackAnswerShape, OkShape, ThreadDetailShape, ThreadSummaryShape
from agent.domain.commands import UNSET, ThreadPatch
from agent.flows import threads

LIST_DEFAULT: Final = 50
LIST_MAX: Final = 200
OK: Final = {"ok": True}


class ThreadListView(ActorAPIView):
    @docs.operation(
        "threads_list",
        "List conversations",
        answers={200: docs.answer(ThreadSummaryShape(many=True))},
        errors={400: ("invalid_body",)},
        parameters=[docs.limit(default=LIST_DEFAULT, maximum=LIST_MAX)],
    )
    def get(self, request: Request) -> Response:
        """The caller's own, the last changed first, without scratch conversations."""
        limit = limit_of(request, default=LIST_DEFAULT, maximum=LIST_MAX)
        return Response([wire.summary(thread) for thread in threads.list_threads(self.actor, limit)])


class ThreadView(ActorAPIView):
    @docs.operation(
        "threads_read",
        "Read a conversation",
        answers={200: docs.answer(ThreadDetailShape)},
        errors={404: ("not_found",)},
    )
    def get(self, request: Request, thread_id: str) -> Response:
        """The conversation with every message, oldest first; what waits for an idle one starts."""
        thread, queue = threads.read(self.actor, path_id(thread_id))
        return Response({**wire.detail(thread), "queue": queue.to_json()})

    @docs.operation(
        "threads_patch",
        "Change title and pins",
        request=ThreadPatchBody,
        example={"title": "Order 1042", "model": None},
        answers={200: docs.answer(OkShape)},
        errors={
            400: (*docs.BODY_CODES, "agent_not_found", "persona_not_found", "model_not_offered"),
            404: ("not_found",),
            413: ("too_large",),
            415: ("unsupported_type",),
            501: ("not_supported",),
        },
    )
    def patch(self, request: Request, thread_id: str) -> Response:
        """Fields that are absent stay; null clears."""
        values = parse(ThreadPatchBody, read_body(request))
        threads.patch(self.actor, path_id(thread_id), _patch(values))
        return Response(OK)

    @docs.operation(
        "threads_delete",
        "Put a conversation away",
        answers={200: docs.answer(OkShape)},
        errors={404: ("not_found",)},
    )
    def delete(self, request: Request, thread_id: str) -> Response:
        """It is unknown from now on; a run that answers it is stopped, and what waits is removed."""
        threads.delete(self.actor, path_id(thread_id))
        return Response(OK)


class PromoteView(ActorAPIView):
    @docs.operation(
        "threads_promote",
        "List a scratch conversation",
        answers={200: docs.answer(OkShape)},
        errors={404: ("not_found",)},
    )
    def post(self, request: Request, thread_id: str) -> Response:
        """Makes a transient conversation a listed one."""
        threads.promote(self.actor, path_id(thread_id))
        return Response(OK)


class ForkView(ActorAPIView):
    @docs.operation(
        "threads_fork",
        "Copy a conversation",
        answers={201: docs.answer(ThreadSummaryShape)},
        errors={404: ("not_found",)},
    )
    def post(self, request: Request, thread_id: str, message_id: str) -> Response:
        """A copy up to and including the message; an unknown message copies all."""
        fork = threads.fork(self.actor, path_id(thread_id), message_id)
        return Response(wire.summary(fork), status=201)


class TruncateView(ActorAPIView):
    @docs.operation(
        "threads_truncate",
        "Cut a conversation",
        answers={200: docs.answer(OkShape)},
        errors={404: ("not_found",), 409: ("run_active",)},
    )
    def delete(self, request: Request, thread_id: str, message_id: str) -> Response:
        """Removes the message and all that follows; what was spent stays in the ledger."""
        threads.truncate(self.actor, path_id(thread_id), path_id(message_id))
        return Response(OK)


class FeedbackView(ActorAPIView):
    @docs.operation(
        "messages_feedback",
        "Rate an answer",
        request=FeedbackBody,
        example={"value": "up", "comment": "Just what I needed."},
        answers={200: docs.answer(FeedbackAnswerShape)},
        errors={
            400: docs.BODY_CODES,
            404: ("not_found",),
            413: ("too_large",),
            415: ("unsupported_type",),
            501: ("not_supported",),
        },
    )
    def post(self, request: Request, message_id: str) -> Response:
        """One value a message, set by the owner of the conversation; null takes it back."""
        values = parse(FeedbackBody, read_body(request))
        feedback = threads.give_feedback(
            self.actor, path_id(message_id), values["value"], comment=values.get("comment")
        )
        return Response({"feedback": feedback})


def _patch(values: dict[str, Any]) -> ThreadPatch:
    title = values.get("title", UNSET)
    return ThreadPatch(
        title=threads.NEW_TITLE if title is None else title,
        default_agent=values.get("defaultAgent", UNSET),
        model=values.get("model", UNSET),
        persona=values.get("persona", UNSET),
    )
