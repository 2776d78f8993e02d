"""PROVIDER_CONTRACT on the scripted model and on the library, over real sockets and three wire formats."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agent.errors import ModelError
from agent.providers.pydantic_ai import PydanticAIProvider
from agent.providers.scripted import ScriptedProvider, ScriptedReply
from agent.spi import ModelProvider
from agent.testing.contracts.base import Case
from agent.testing.contracts.provider import PROVIDER_CONTRACT, ProviderSubject, VendorAnswer
from tests.vendors.anthropic import Anthropic
from tests.vendors.openai_chat import OpenAIChat
from tests.vendors.openai_responses import OpenAIResponses
from tests.vendors.server import Dialect, Vendor

pytestmark = pytest.mark.once

TRANSIENT = {408, 429, 500, 503}


class Scripted:
    """The scripted model is its own vendor."""

    secret = "sk-test-0123456789abcdef"

    def answering(self, *answers: VendorAnswer) -> ModelProvider:
        return ScriptedProvider([self._line(answer) for answer in answers])

    def _line(self, answer: VendorAnswer) -> ScriptedReply | ModelError:
        if answer.status is not None:
            return ModelError(transient=answer.status in TRANSIENT, status=answer.status)
        silent = answer.ending == "silence"
        return ScriptedReply(
            "".join(answer.text) + " wait" * (1000 if silent else 0),
            "".join(answer.reasoning),
            answer.calls,
            delay_ms=100 if silent else 0,
            error=ModelError(transient=True) if answer.ending == "cut" else None,
            usage=answer.usage,
            stop=answer.stop,
        )


class OverTheWire:
    """The library against a vendor on the loopback."""

    def __init__(self, vendor: Vendor, model: str, path: str) -> None:
        self.secret = vendor.secret
        self.vendor = vendor
        self.model = model
        self.path = path

    def answering(self, *answers: VendorAnswer) -> ModelProvider:
        self.vendor.answers.extend(answers)
        return PydanticAIProvider(self.model, base_url=self.vendor.url + self.path, api_key=self.secret)


VENDORS: dict[str, tuple[type[Dialect], str, str]] = {
    "openai-chat": (OpenAIChat, "openai-chat:gpt-test", "/v1"),
    "openai-responses": (OpenAIResponses, "openai:gpt-5.6-luna", "/v1"),
    "anthropic": (Anthropic, "anthropic:claude-haiku-4-5", ""),
}


@pytest.fixture(params=["scripted", *VENDORS])
def subject(request: pytest.FixtureRequest) -> Iterator[ProviderSubject]:
    if request.param == "scripted":
        yield Scripted()
        return
    dialect, model, path = VENDORS[request.param]
    with Vendor(dialect()) as vendor:
        yield OverTheWire(vendor, model, path)


@pytest.mark.parametrize("case", PROVIDER_CONTRACT, ids=lambda case: case.name)
def test_promise(case: Case[ProviderSubject], subject: ProviderSubject) -> None:
    case.run(subject)
