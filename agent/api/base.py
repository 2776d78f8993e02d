"""The view that every route of this API is: who acts, may they, and one shape for every error."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, ClassVar, NoReturn, cast

from django.core.handlers.asgi import ASGIRequest
from django.core.signals import got_request_exception
from django.db import connections, transaction
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.utils.datastructures import MultiValueDict
from drf_spectacular.openapi import AutoSchema
from rest_framework.authentication import (
    BaseAuthentication,
    BasicAuthentication,
    SessionAuthentication,
    TokenAuthentication,
)
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agent.actors import resolve
from agent.api.errors import ErrorAnswer, answer_to, fault
from agent.api.parsing import JsonParser
from agent.api.rendering import AsciiJSONRenderer, NoNegotiation
from agent.conf import agent_settings
from agent.db import REQUEST_THREADS, close_connections
from agent.domain.actor import Actor
from agent.errors import NotAllowed, NotAuthenticated
from agent.spi import ActorResolver

AUTHENTICATE = 'Session realm="agent"'


class ActorAPIView(APIView):
    """Resolves the actor, keeps CSRF for callers known by a cookie, and answers in JSON whatever `Accept` says."""

    parser_classes = (JsonParser,)
    renderer_classes = (AsciiJSONRenderer,)
    content_negotiation_class = NoNegotiation
    permission_classes = ()
    versioning_class = None
    metadata_class = None
    http_method_names = ["get", "post", "patch", "delete", "head"]
    format_kwarg = None
    schema = AutoSchema()
    # Under ASGI every request has a thread of its own, and so a connection of its own: of a thousand at once these many
    # have one, and the others wait for their turn.
    slots: ClassVar[threading.BoundedSemaphore] = threading.BoundedSemaphore(REQUEST_THREADS)

    actor: Actor

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:  # noqa: ANN401  (as Django has it)
        """Outside of any ATOMIC_REQUESTS transaction: flows open their own, and dispatch when they commit."""
        view = super().as_view(**initkwargs)
        for alias in connections:
            transaction.non_atomic_requests(alias)(view)
        return view

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  (as Django has it)
        """Under ASGI a request has a connection only while a view works on it, and only so many work at once."""
        if not isinstance(request, ASGIRequest):  # a WSGI server has bounded threads, which keep their connections
            return super().dispatch(request, *args, **kwargs)
        with self.slots:
            try:
                return super().dispatch(request, *args, **kwargs)
            finally:
                close_connections()

    def initialize_request(self, request: HttpRequest, *args: object, **kwargs: object) -> Request:
        """REST framework's own parsing stays off: its CSRF check would read the body before anybody is known."""
        wrapped = super().initialize_request(request, *args, **kwargs)
        read = {"_data": QueryDict(), "_full_data": QueryDict(), "_files": MultiValueDict()}
        vars(wrapped).update(read)
        return wrapped

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        request.accepted_renderer, request.accepted_media_type = self.perform_content_negotiation(request)
        request.version, request.versioning_scheme = None, None
        self.perform_authentication(request)
        resolver = cast("ActorResolver", agent_settings().actor_resolver)
        actor = resolve(resolver, request._request)
        if actor is None:
            raise NotAuthenticated
        if known_by_cookie(request, resolver):
            SessionAuthentication().enforce_csrf(request)
        self.actor = actor
        self.check_permissions(request)
        self.check_throttles(request)

    def get_permissions(self) -> list[BasePermission]:
        """Those of AGENT alone: the host's default asks for a Django user, and an actor need not be one."""
        return [kind() for kind in agent_settings().permission_classes]

    def permission_denied(self, request: Request, message: str | None = None, code: str | None = None) -> NoReturn:
        raise NotAllowed(message)

    def finalize_response(
        self,
        request: Request,
        response: HttpResponseBase,
        *args: object,
        **kwargs: object,
    ) -> Any:  # noqa: ANN401  (a stream is no Response of REST framework)
        answer = super().finalize_response(request, response, *args, **kwargs)  # type: ignore[arg-type]
        finish = getattr(agent_settings().actor_resolver, "finish", None)
        if finish is not None and hasattr(self, "actor"):
            finish(request._request, answer)
        return answer

    def handle_exception(self, exc: Exception) -> Response:
        answer = answer_to(exc) or self._unexpected(exc)
        headers: Mapping[str, str] = answer.headers
        if answer.status == 401:
            headers = {**headers, "WWW-Authenticate": self.get_authenticate_header(self.request) or AUTHENTICATE}
        response = Response(answer.body, status=answer.status, headers=dict(headers))
        response.exception = True
        return response

    def _unexpected(self, error: Exception) -> ErrorAnswer:
        answer = fault(f"{self.request.method} {self.request.path}", error)
        got_request_exception.send(sender=type(self), request=self.request._request)
        return answer


def known_by_cookie(request: Request, resolver: ActorResolver) -> bool:
    """Whether a foreign page could send this request in its visitor's name, so that a CSRF token is asked for.

    A header that only the caller itself can add excludes that. An authentication class of the host that reads such a
    header, as well as a resolver, says so by `known_by_header = True`.
    """
    way = cast("BaseAuthentication | None", request.successful_authenticator)
    if way is None:
        return not getattr(resolver, "known_by_header", False)
    if isinstance(way, SessionAuthentication):
        return True
    if isinstance(way, (BasicAuthentication, TokenAuthentication)) or getattr(way, "known_by_header", False):
        return False
    scheme = request.headers.get("Authorization", "").partition(" ")[0].lower()
    # A browser repeats Basic credentials by itself, so they prove nothing about a class that may read a cookie.
    return scheme in {"", "basic"} and bool(request.COOKIES)
