"""A content security policy on every answer, for Django before 6.0; later ones bring their own."""

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import cast

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

HEADER = "Content-Security-Policy"
SyncResponse = Callable[[HttpRequest], HttpResponseBase]
AsyncResponse = Callable[[HttpRequest], Awaitable[HttpResponseBase]]


def policy() -> str:
    """The header's value for `settings.SECURE_CSP`, which has the form that Django 6 gave it."""
    directives: dict[str, list[str]] = settings.SECURE_CSP
    return "; ".join(" ".join([name, *sources]) for name, sources in directives.items())


@sync_and_async_middleware
def content_security_policy(get_response: SyncResponse | AsyncResponse) -> SyncResponse | AsyncResponse:
    """Add the policy where the view named none; async code stays async, without a thread for it."""
    value = policy()

    def add(response: HttpResponseBase) -> HttpResponseBase:
        response.headers.setdefault(HEADER, value)
        return response

    if iscoroutinefunction(get_response):
        answer_later = cast(AsyncResponse, get_response)

        async def async_middleware(request: HttpRequest) -> HttpResponseBase:
            return add(await answer_later(request))

        return async_middleware

    answer = cast(SyncResponse, get_response)

    def middleware(request: HttpRequest) -> HttpResponseBase:
        return add(answer(request))

    return middleware
