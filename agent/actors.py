"""Who acts: a request, or a socket's scope, becomes an actor. One resolver serves both."""

from __future__ import annotations

import hashlib
import inspect
import re
import secrets
from collections.abc import Mapping
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.http import HttpRequest, HttpResponseBase, parse_cookie

from agent.conf import agent_settings
from agent.domain.actor import Actor
from agent.errors import Invalid
from agent.spi import ActorResolver

Source = HttpRequest | Mapping[str, Any]  # a request, or the scope of a socket

ANONYMOUS_COOKIE = "agent_anon"
ANONYMOUS_ROLE = "anonymous"
YEAR_SECONDS = 365 * 24 * 3600
FLAGS = ("staff", "superuser")  # of a user, as roles
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}\Z")  # 32 bytes in url-safe base64


def resolve(resolver: ActorResolver, source: Source) -> Actor | None:
    """The actor of a request or a scope, whether the resolver is sync or async; its exceptions pass."""
    answer = resolver.resolve(source)
    if not inspect.isawaitable(answer):
        return answer

    async def wait() -> Actor | None:
        return await answer

    return async_to_sync(wait)()


class DjangoUserResolver:
    """The user of the request: ref is the primary key, roles are the groups and the flags."""

    def resolve(self, request: Source) -> Actor | None:
        return actor_of(_user(request))


class DjangoBackgroundResolver:
    """Who that user is now, long after the request; None once the account is gone or inactive."""

    def resolve(self, ref: str, tenant_ref: str | None) -> Actor | None:
        if tenant_ref is not None:
            return None
        return actor_of(_user_by_ref(ref))


class Holder:
    """The Django user behind an actor, loaded at most once and only when a permission asks for it."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor
        self._user: Any = None
        self._loaded = False

    def has(self, permission: str | None) -> bool:
        """Whether today's user has it; an actor without an active user has none."""
        if permission is None:
            return True
        if not self._loaded:
            self._user, self._loaded = _user_by_ref(self._actor.ref), True
        return self._user is not None and self._user.is_active and bool(self._user.has_perm(permission))


def _user_by_ref(ref: str) -> Any:  # noqa: ANN401 - the host's own user model
    try:
        return get_user_model()._default_manager.filter(pk=ref).first()
    except (ValueError, TypeError, OverflowError, ValidationError):  # no primary key looks like this
        return None


class AnonymousCookieResolver:
    """A signed-in user as usual; anybody else is whoever holds the cookie, which a first visit is given."""

    def resolve(self, request: Source) -> Actor | None:
        user = _user(request)
        if user is not None and user.is_authenticated:
            return actor_of(user)
        token = _cookies(request).get(ANONYMOUS_COOKIE, "")
        if not _TOKEN.match(token):
            if not isinstance(request, HttpRequest):
                return None  # a handshake cannot hand out a cookie: the page before it has
            token = secrets.token_urlsafe(32)
            request.agent_anonymous_token = token  # type: ignore[attr-defined]
        return Actor(f"anon:{hashlib.sha256(token.encode()).hexdigest()}", (ANONYMOUS_ROLE,))

    def finish(self, request: HttpRequest, response: HttpResponseBase) -> None:
        """Give a new visitor the cookie."""
        token = getattr(request, "agent_anonymous_token", None)
        if token:
            response.set_cookie(
                ANONYMOUS_COOKIE,
                token,
                max_age=YEAR_SECONDS,
                secure=request.is_secure(),
                httponly=True,
                samesite="Lax",
            )


class HeaderActorResolver:
    """The actor that a trusted gateway names; only for sites that nobody reaches but through it."""

    known_by_header = True  # so no CSRF token is asked for

    def resolve(self, request: Source) -> Actor | None:
        if not agent_settings().trusted_gateway:
            raise ImproperlyConfigured('HeaderActorResolver needs AGENT["TRUSTED_GATEWAY"] = True (agent.E031).')
        try:
            ref = _header(request, "x-actor-id")
            roles = _header(request, "x-actor-role") or ""
            tenant = _header(request, "x-tenant-ref")
            names = [name.strip() for name in roles.split(",")]
            return Actor(ref, tuple(dict.fromkeys(filter(None, names))), tenant) if ref else None
        except (Invalid, UnicodeDecodeError):
            return None


def actor_of(user: Any) -> Actor | None:  # noqa: ANN401  (any user model, or nobody)
    """A user's actor, in one query for its groups; None for nobody and for a closed account."""
    if user is None or not user.is_authenticated or not user.is_active:
        return None
    groups = getattr(user, "groups", None)  # a user model of the host's own may have none
    names = sorted(groups.values_list("name", flat=True)) if groups is not None else []
    flags = [role for role in FLAGS if getattr(user, f"is_{role}", False)]
    return Actor(str(user.pk), tuple(dict.fromkeys([*names, *flags])))


def _user(source: Source) -> Any:  # noqa: ANN401  (any user model, or nobody)
    return source.get("user") if isinstance(source, Mapping) else getattr(source, "user", None)


def _cookies(source: Source) -> Mapping[str, str]:
    if isinstance(source, HttpRequest):
        return source.COOKIES
    if "cookies" in source:
        return dict(source["cookies"])
    headers = [value for name, value in source.get("headers", ()) if name == b"cookie"]
    return parse_cookie(b"; ".join(headers).decode("latin-1"))


def _header(source: Source, name: str) -> str | None:
    """A header's text; servers hand bytes over as Latin-1, and a gateway writes UTF-8."""
    if isinstance(source, HttpRequest):
        value = source.headers.get(name)
        return None if value is None else value.encode("latin-1").decode()
    values = [value for key, value in source.get("headers", ()) if key == name.encode()]
    return b",".join(values).decode() if values else None
