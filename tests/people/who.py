"""A resolver of the host's own: partners by an API key, everybody else as usual."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.actors import DjangoUserResolver
from agent.domain.actor import Actor

KEYS = {"k-acme": Actor("partner-1", ("partner",), "acme")}


class Partners(DjangoUserResolver):
    """Reads `x-api-key` of a request or a socket."""

    def resolve(self, request: Any) -> Actor | None:
        return KEYS.get(_key(request)) or super().resolve(request)


def _key(source: Any) -> str:
    if isinstance(source, Mapping):
        named: dict[bytes, bytes] = dict(source["headers"])
        return named.get(b"x-api-key", b"").decode()
    return str(source.headers.get("X-Api-Key", ""))
