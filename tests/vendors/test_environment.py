"""Which provider the environment names, and what is hidden of what vendors say."""

from __future__ import annotations

import pytest

from agent.domain.redaction import HIDDEN
from agent.providers.pydantic_ai import provider_from_environment
from agent.providers.redaction import LONGEST, redact

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("env", "model"),
    [
        ({}, None),
        ({"AGENT_MODEL": "openai:gpt-6-luna"}, None),
        ({"OPENAI_API_KEY": " "}, None),
        ({"OPENAI_API_KEY": "k"}, "openai:gpt-5.6-luna"),
        ({"ANTHROPIC_API_KEY": "k"}, "anthropic:claude-haiku-5-5"),
        ({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, "openai:gpt-5.6-luna"),
        ({"OPENAI_API_KEY": "k", "AGENT_MODEL": "gpt-6-luna"}, "openai:gpt-6-luna"),
        ({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "AGENT_MODEL": "anthropic:x"}, "anthropic:x"),
        ({"OPENAI_BASE_URL": "http://gpu/v1", "AGENT_MODEL": "qwen3"}, "openai-chat:qwen3"),
        ({"OPENAI_BASE_URL": "http://gpu/v1", "AGENT_MODEL": "openai:qwen3"}, "openai:qwen3"),
    ],
)
def test_the_environment_names_a_provider(env: dict[str, str], model: str | None) -> None:
    provider = provider_from_environment(env)
    assert (provider and provider.default_model) == model
    assert "k'" not in repr(provider)


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: MARKER. You can find yours at https://x",
        "headers: {'Authorization': 'Bearer MARKER', 'X-Other': '1'}",
        "authorization=Basic MARKER",
        "x-api-key: MARKER",
        '{"api_key":"MARKER"}',
        "could not reach https://user:MARKER@proxy.example:8080/v1",
        "postgresql://app:MARKER@db/app",
        "OPENAI_API_KEY=MARKER",
        "password = MARKER;",
        "access_token: 'MARKER'",
    ],
)
@pytest.mark.parametrize("marker", ["sk-abc_DEF-0123456789", "ghj4567890.plain+=", "eyJhbGciOi.eyJzdWIi.c2ln"])
def test_credentials_are_hidden_wherever_they_stand(text: str, marker: str) -> None:
    redacted = redact(text.replace("MARKER", marker))
    assert marker not in redacted
    assert HIDDEN in redacted


@pytest.mark.parametrize(
    "key", ["sk-ant-api03-abcdefgh", "AKIAABCDEFGHIJKLMNOP", "AIzaSyA1234567890abcdefghij", "gsk_abcdef1"]
)
def test_keys_are_known_by_their_shape(key: str) -> None:
    assert redact(f"upstream said {key} is bad") == f"upstream said {HIDDEN} is bad"


def test_known_secrets_are_hidden_whatever_they_look_like() -> None:
    assert redact("the word is swordfish!", ["swordfish", ""]) == f"the word is {HIDDEN}!"


@pytest.mark.parametrize(
    "text",
    [
        "status_code: 404, model_name: gpt-5, body: {'message': 'The model `gpt-5` does not exist'}",
        "max_tokens: 300 is too large for this model; input_tokens: 12",
        "Read timed out. https://api.example.com/v1/messages",
        "You asked for a token of thanks",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert redact(text) == text


def test_a_long_text_is_cut() -> None:
    assert len(redact("x" * 100_000)) < LONGEST + 10
