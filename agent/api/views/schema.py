"""The OpenAPI document of these routes, where the installation serves it."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any

from django.urls import include, path
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import patched_settings
from rest_framework.request import Request
from rest_framework.response import Response

from agent.api import docs
from agent.api.base import ActorAPIView
from agent.conf import agent_settings
from agent.errors import NotFound

SPECTACULAR = {"OAS_VERSION": "3.1.0", "TITLE": "django-steward", "DESCRIPTION": "Conversations with governed agents."}


_making = threading.Lock()  # the generator reads settings of the whole process


class SchemaView(ActorAPIView):
    @docs.operation(
        "schema",
        "The OpenAPI document of this API",
        answers={200: docs.JSON_OBJECT},
        errors={404: ("not_found",)},
    )
    def get(self, request: Request) -> Response:
        """Only these routes, under the prefix where the host has mounted them; 404 where it is not served."""
        if not agent_settings().serve_schema:
            raise NotFound
        prefix = request._request.path.rstrip("/").removesuffix("schema").lstrip("/")
        return Response(document(prefix))


@lru_cache(maxsize=8)
def document(prefix: str) -> dict[str, Any]:
    """OpenAPI 3.1 of the agent's routes below `prefix`."""
    with _making, patched_settings(SPECTACULAR):
        generator = SchemaGenerator(patterns=[path(prefix, include("agent.api.urls"))])  # type: ignore[no-untyped-call]
        schema: dict[str, Any] = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return schema
