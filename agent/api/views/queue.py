"""Messages that wait: look, change, move, remove, let one go first."""

from __future__ import annotations

from typing import Any, Final

from rest_framework.request import Request
from rest_framework.response import Response

from agent.api import docs
from agent.api.base import ActorAPIView
from agent.api.bodies import QueuedPatchBody
from agent.api.parsing import parse, path_id, read_body
from agent.api.shapes import InterruptedShape, QueueShape, ResumedShape
from agent.domain.commands import UNSET
from agent.flows import queue
from agent.flows.queue import Edit, Moved

ERRORS: Final = {404: ("not_found",), 501: ("not_supported",)}
OF_A_MESSAGE: Final = {**ERRORS, 410: ("message_gone",)}


class QueueView(ActorAPIView):
    @docs.operation("queue_read", "Read the queue", answers={200: docs.answer(QueueShape)}, errors=ERRORS)
    def get(self, request: Request, thread_id: str) -> Response:
        """What waits in the conversation, the next one first, and what holds it."""
        return Response(queue.read(self.actor, path_id(thread_id)).to_json())

    @docs.operation("queue_clear", "Clear the queue", answers={200: docs.answer(QueueShape)}, errors=ERRORS)
    def delete(self, request: Request, thread_id: str) -> Response:
        """Removes all that waits and lifts the pause; the running answer goes on."""
        return Response(queue.clear(self.actor, path_id(thread_id)).to_json())


class ResumeView(ActorAPIView):
    @docs.operation("queue_resume", "Resume the queue", answers={200: docs.answer(ResumedShape)}, errors=ERRORS)
    def post(self, request: Request, thread_id: str) -> Response:
        """Lifts the pause; an idle conversation goes on with its next message."""
        return Response(_moved(queue.resume(self.actor, path_id(thread_id))))


class QueuedMessageView(ActorAPIView):
    @docs.operation(
        "queue_patch",
        "Change a waiting message",
        request=QueuedPatchBody,
        example={"message": "Where is order 1043?", "position": 0},
        answers={200: docs.answer(QueueShape)},
        errors={
            400: (*docs.BODY_CODES, "empty_message"),
            **OF_A_MESSAGE,
            403: ("forbidden", "attachment_forbidden"),
            413: ("too_large",),
            415: ("unsupported_type",),
        },
    )
    def patch(self, request: Request, message_id: str) -> Response:
        """Fields that are absent stay; 410 once it has started."""
        values = parse(QueuedPatchBody, read_body(request))
        return Response(queue.edit(self.actor, path_id(message_id), _edit(values)).to_json())

    @docs.operation(
        "queue_remove", "Remove a waiting message", answers={200: docs.answer(QueueShape)}, errors=OF_A_MESSAGE
    )
    def delete(self, request: Request, message_id: str) -> Response:
        """The others stay; 410 once it has started."""
        return Response(queue.remove(self.actor, path_id(message_id)).to_json())


class InterruptView(ActorAPIView):
    @docs.operation(
        "queue_interrupt",
        "Send a waiting message now",
        answers={200: docs.answer(InterruptedShape)},
        errors=OF_A_MESSAGE,
    )
    def post(self, request: Request, message_id: str) -> Response:
        """It is answered next: the running answer is asked to stop, and an idle conversation starts at once."""
        return Response(_moved(queue.interrupt(self.actor, path_id(message_id))))


def _edit(values: dict[str, Any]) -> Edit:
    return Edit(
        message=values.get("message", UNSET),
        attachments=_media_ids(values["attachments"]) if "attachments" in values else UNSET,
        position=values.get("position", UNSET),
    )


def _media_ids(refs: list[dict[str, Any]] | None) -> tuple[str, ...] | None:
    return None if refs is None else tuple(ref["mediaId"] for ref in refs)


def _moved(moved: Moved) -> dict[str, Any]:
    started = {"runId": moved.run_id} if moved.run_id else {}
    return {**moved.state.to_json(), **started, **({"interrupting": True} if moved.interrupting else {})}
