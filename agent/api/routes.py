"""A route with and without its slash."""

from __future__ import annotations

from django.urls import URLPattern, path

from agent.api.base import ActorAPIView


def route(pattern: str, view: type[ActorAPIView], name: str) -> list[URLPattern]:
    """The path as it is documented and reversed, and the same with a slash behind it."""
    return [
        path(pattern, view.as_view(), name=name),
        path(f"{pattern}/", view.as_view(schema=None)),
    ]
