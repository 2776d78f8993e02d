"""The vendors, each with a provider that speaks to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agent.providers.pydantic_ai import PydanticAIProvider
from tests.vendors.anthropic import Anthropic
from tests.vendors.openai_chat import OpenAIChat
from tests.vendors.openai_responses import OpenAIResponses
from tests.vendors.server import Dialect, Vendor

WIRES: dict[str, tuple[type[Dialect], str, str]] = {
    "chat": (OpenAIChat, "openai-chat:gpt-test", "/v1"),
    "responses": (OpenAIResponses, "openai:gpt-5.6-luna", "/v1"),
    "messages": (Anthropic, "anthropic:claude-haiku-4-5", ""),
}


class Wire:
    """A vendor, and how to reach it."""

    def __init__(self, name: str, vendor: Vendor) -> None:
        self.name = name
        self.vendor = vendor
        _, self.model, path = WIRES[name]
        self.base_url = vendor.url + path

    def provider(self, **options: object) -> PydanticAIProvider:
        wanted: dict[str, object] = {"base_url": self.base_url, "api_key": self.vendor.secret, **options}
        return PydanticAIProvider(str(wanted.pop("model", self.model)), **wanted)  # type: ignore[arg-type]


def _wire(name: str) -> Iterator[Wire]:
    with Vendor(WIRES[name][0]()) as vendor:
        yield Wire(name, vendor)


@pytest.fixture
def chat() -> Iterator[Wire]:
    yield from _wire("chat")


@pytest.fixture
def responses() -> Iterator[Wire]:
    yield from _wire("responses")


@pytest.fixture
def messages() -> Iterator[Wire]:
    yield from _wire("messages")


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> Iterator[Wire]:
    """Each of them in turn."""
    yield from _wire(request.param)
