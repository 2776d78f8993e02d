"""Who is at the other end of a socket: looked at anew each time, for a socket outlives logouts and lost rights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from types import SimpleNamespace
from typing import Any, cast

from django.conf import settings as django_settings
from django.contrib.auth import get_user
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.base import SessionBase
from django.core.handlers.asgi import ASGIRequest
from django.db import models
from rest_framework.request import Request

from agent.actors import resolve
from agent.api.base import ActorAPIView
from agent.conf import agent_settings
from agent.domain.actor import Actor
from agent.spi import ActorResolver

Scope = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """Who it is at this moment, and the scope that says so."""

    actor: Actor
    scope: Scope

    def admit(self, kind: type[ActorAPIView], method: str) -> None:
        """Ask the permissions and throttles of the view that does the same over HTTP; raises what they raise."""
        http = ASGIRequest({**self.scope, "type": "http", "method": method}, BytesIO())
        http.session = self.scope.get("session")  # type: ignore[assignment]
        request = Request(http, authenticators=())
        request.user = self.scope.get("user") or AnonymousUser()
        view = kind(request=request, args=(), kwargs={}, actor=self.actor)
        view.check_permissions(request)
        view.check_throttles(request)


class Caller:
    """Whoever opened the socket, by the session of the handshake or in the host's own way."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._by_session: bool | None = None

    def now(self) -> Present | None:
        """Who it is now, by the resolver that requests have too; None: nobody any more. Reads the database."""
        scope = self._read_again()
        actor = resolve(cast("ActorResolver", agent_settings().actor_resolver), scope)
        return None if actor is None else Present(actor=actor, scope=scope)

    def _read_again(self) -> Scope:
        known = self._scope.get("user")
        if "session" not in self._scope:
            return {**self._scope, "user": _again(known)}
        session = _session(self._scope["session"].session_key)
        user = get_user(cast(Any, SimpleNamespace(session=_Held(session.items()))))
        if self._by_session is None:
            self._by_session = user.is_authenticated or not getattr(known, "is_authenticated", False)
        return {**self._scope, "session": session, "user": user if self._by_session else _again(known)}


class _Held(dict[str, Any]):
    """A session as it was read. To look at it changes nothing: a socket cannot hand out a new key."""

    def flush(self) -> None:
        """Its user is not its user any more; the next request of the browser ends it."""

    def cycle_key(self) -> None:
        """It was signed with an older secret; the next request of the browser renews it."""


def _session(key: str | None) -> SessionBase:
    store: type[SessionBase] = import_module(django_settings.SESSION_ENGINE).SessionStore
    return store(key)


def _again(user: object) -> object:
    """The user as the database has it now; what is no row stays as the host gave it."""
    if not isinstance(user, models.Model):
        return user
    return user._meta.model._default_manager.filter(pk=user.pk).first() or AnonymousUser()
