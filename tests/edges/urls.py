"""A route over the base view alone, and the site's own beside it."""

from __future__ import annotations

from typing import ClassVar

from django.db import connection
from django.urls import path
from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle

from agent.api.base import ActorAPIView
from agent.api.bodies import SendBody
from agent.api.parsing import cursor_of, idempotency_key_of, limit_of, parse, read_body
from agent.api.routes import route
from agent.domain.actor import Actor


class EchoView(ActorAPIView):
    """Tells who acts and what was understood."""

    work: ClassVar[list[str]] = []  # what was done, so that a refusal can be seen to come before it

    def get(self, request: Request) -> Response:
        return Response(
            {
                "actor": self.actor.to_json(),
                "limit": limit_of(request, default=50, maximum=200),
                "cursor": cursor_of(request),
                "atomic": connection.in_atomic_block,
                "odd": "\ud800",
            }
        )

    def post(self, request: Request) -> Response:
        idempotency_key_of(request)
        values = parse(SendBody, read_body(request))
        self.work.append("post")
        return Response({"actor": self.actor.to_json(), "values": values})


class BrokenView(ActorAPIView):
    def get(self, request: Request) -> Response:
        raise RuntimeError("postgres://user:sk-secret@host")


class Closed(BasePermission):
    message = "Not today."

    def has_permission(self, request: Request, view: object) -> bool:
        return False


class Never(BaseThrottle):
    def allow_request(self, request: Request, view: object) -> bool:
        return False

    def wait(self) -> float:
        return 1.5


class ApiKey(BaseAuthentication):
    """A host's own way, which reads a header and nothing else, but does not say so."""

    def authenticate(self, request: Request) -> tuple[object, None] | None:
        return (request._request.user, None) if request.headers.get("X-Api-Key") else None


class OpenApiKey(ApiKey):
    known_by_header = True


class AsyncResolver:
    async def resolve(self, request: object) -> Actor:
        return Actor("async")


class FailingResolver:
    def resolve(self, request: object) -> Actor:
        raise RuntimeError("directory down")


urlpatterns = [*route("echo", EchoView, "echo"), path("broken", BrokenView.as_view())]
