"""What a model writes as arguments is kept as JSON, or as the text that it wrote."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.domain.arguments import DEEPEST, kept_arguments, raw_text, read_arguments


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize("value", [{}, {"a": [1, None, "\x00\ud800"]}, {"a": 10**400}, nested(DEEPEST)])
def test_what_json_can_say_is_kept_as_it_is(value: dict[str, Any]) -> None:
    assert read_arguments(json.dumps(value)) == kept_arguments(value) == value


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", '{"a": NaN}', '{"a": 1e999}', '{"a": 1, "a": 1}', json.dumps(nested(DEEPEST + 1))]
)
def test_a_text_that_is_none_is_kept_as_that_text(text: str) -> None:
    assert raw_text(read_arguments(text)) == text


@pytest.mark.parametrize("value", [{"a": float("nan")}, {1: 2}, {"a": {1}}, {"a": 10**5000}, nested(DEEPEST + 1)])
def test_what_json_cannot_say_is_kept_in_words(value: object) -> None:
    assert raw_text(kept_arguments(value))
