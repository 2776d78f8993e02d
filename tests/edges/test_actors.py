"""The same actor from a request and from a socket's scope, and later from the reference alone."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User
from django.core.exceptions import ImproperlyConfigured
from django.test import RequestFactory, override_settings

from agent.actors import (
    ANONYMOUS_COOKIE,
    AnonymousCookieResolver,
    DjangoBackgroundResolver,
    DjangoUserResolver,
    HeaderActorResolver,
    resolve,
)
from agent.domain.actor import Actor
from agent.spi import ActorResolver

pytestmark = pytest.mark.django_db

TOKEN = "x" * 43


def scope(user: object = None, **headers: str) -> dict[str, Any]:
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": "websocket", "user": user if user is not None else AnonymousUser(), "headers": named}


def request(user: object = None, **headers: str) -> Any:
    made = RequestFactory().get("/", headers={name.replace("_", "-"): value for name, value in headers.items()})
    made.user = user if user is not None else AnonymousUser()  # type: ignore[assignment]
    return made


@pytest.fixture
def ana() -> User:
    user = User.objects.create_user("ana", is_superuser=True)
    user.groups.add(Group.objects.create(name="support"), Group.objects.create(name="superuser"))
    return user


def test_a_user_is_the_same_actor_everywhere(ana: User) -> None:
    expected = Actor(str(ana.pk), ("superuser", "support"))  # a group of that name and the flag are one role
    for resolver in (DjangoUserResolver(), AnonymousCookieResolver()):
        assert resolver.resolve(request(ana)) == expected
        assert resolver.resolve(scope(ana)) == expected
    assert DjangoBackgroundResolver().resolve(str(ana.pk), None) == expected


def test_a_closed_account_is_nobody_now_and_later(ana: User) -> None:
    ana.is_active = False
    ana.save()
    for resolver in (DjangoUserResolver(), AnonymousCookieResolver()):
        assert resolver.resolve(request(ana)) is None
        assert resolver.resolve(scope(ana)) is None
    assert DjangoBackgroundResolver().resolve(str(ana.pk), None) is None


@pytest.mark.parametrize("ref", ["", "0", "-1", "x", "9" * 30, "anon:ab", "\x00", "\ud800"])
def test_a_reference_that_no_account_has_is_nobody(ana: User, ref: str) -> None:
    assert DjangoBackgroundResolver().resolve(ref, None) is None


def test_a_user_of_this_site_has_no_tenant(ana: User) -> None:
    assert DjangoBackgroundResolver().resolve(str(ana.pk), "acme") is None


def test_a_visitor_is_the_same_by_page_and_by_socket() -> None:
    resolver = AnonymousCookieResolver()
    cookie = f"{ANONYMOUS_COOKIE}={TOKEN}"
    by_page = resolver.resolve(request(Cookie=cookie))
    assert by_page is not None
    assert resolver.resolve(scope(cookie=f"a=b; {cookie}")) == by_page
    assert resolver.resolve({**scope(), "cookies": {ANONYMOUS_COOKIE: TOKEN}}) == by_page
    assert TOKEN not in by_page.ref


def test_a_socket_makes_no_visitor() -> None:
    assert AnonymousCookieResolver().resolve(scope()) is None
    assert AnonymousCookieResolver().resolve(scope(cookie=f"{ANONYMOUS_COOKIE}=short")) is None


@override_settings(AGENT={"TRUSTED_GATEWAY": True})
def test_a_gateway_names_the_same_actor_both_ways() -> None:
    headers = {"x_actor_id": "u-1", "x_actor_role": "b, a", "x_tenant_ref": "acme"}
    for source in (request(**headers), scope(**headers)):
        assert HeaderActorResolver().resolve(source) == Actor("u-1", ("b", "a"), "acme")
    assert HeaderActorResolver().resolve(scope()) is None
    assert HeaderActorResolver().resolve(scope(x_actor_id="a\x00b")) is None


def test_headers_count_for_nothing_without_the_setting() -> None:
    with pytest.raises(ImproperlyConfigured, match=r"agent\.E031"):
        HeaderActorResolver().resolve(request(x_actor_id="root"))


class Late:
    async def resolve(self, source: object) -> Actor | None:
        return Actor("late")


class Failing:
    async def resolve(self, source: object) -> Actor | None:
        raise LookupError("directory down")


def test_an_async_resolver_is_waited_for_and_its_failure_passes() -> None:
    late: ActorResolver = Late()
    assert resolve(late, request()) == Actor("late")
    with pytest.raises(LookupError):
        resolve(Failing(), request())
