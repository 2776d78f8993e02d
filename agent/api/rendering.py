"""How bytes leave: ASCII-escaped JSON, whatever the client says it accepts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request


def to_json(data: object) -> str:
    """Compact ASCII JSON: a lone surrogate that was stored cannot break an answer."""
    return json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


class AsciiJSONRenderer(BaseRenderer):
    media_type = "application/json"
    format = "json"
    charset = None  # JSON has none

    def render(
        self,
        data: Any,  # noqa: ANN401  (whatever JSON can say)
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        return b"" if data is None else to_json(data).encode("ascii")


class NoNegotiation(BaseContentNegotiation):
    """There is one form of every answer: an `Accept` or a `format=` never refuses it."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        return next(iter(parsers), None)

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type or ""
