"""A confirm token holds for the call whose preview it came with, and for nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent.domain.confirm_tokens import Claim, hash_of

CLAIM = Claim(tool="export", actor_ref="ana", tenant_ref=None, arguments={"since": 1, "until": {"b": 1, "a": 2}})
TOKEN = CLAIM.token("secret", 36**3 + 1)


def test_a_token_is_its_expiry_and_a_signature() -> None:
    written, _, signature = TOKEN.partition(".")
    assert (written, len(signature)) == ("1001", 64)
    assert CLAIM.expiry("secret", TOKEN, 36**3) == 36**3 + 1
    assert hash_of(TOKEN) != hash_of(TOKEN + " ")


def test_the_order_of_keys_says_nothing() -> None:
    same = replace(CLAIM, arguments={"until": {"a": 2, "b": 1}, "since": 1})
    assert same.token("secret", 36**3 + 1) == TOKEN


@pytest.mark.parametrize(
    "other",
    [
        {"tool": "import"},
        {"actor_ref": "Ana"},
        {"tenant_ref": ""},
        {"arguments": {"since": 2, "until": {"b": 1, "a": 2}}},
        {"arguments": {}},
    ],
)
def test_another_call_s_token_is_none(other: dict[str, Any]) -> None:
    assert replace(CLAIM, **other).expiry("secret", TOKEN, 0) is None


@pytest.mark.parametrize(
    "token",
    [
        "",
        ".",
        "1001",
        "1002." + TOKEN[5:],
        TOKEN + "0",
        TOKEN.upper(),
        " " + TOKEN,
        "-1.x",
        "\u0661." + TOKEN[5:],
        "z" * 9999,
    ],
)
def test_what_was_tampered_with_is_none(token: str) -> None:
    assert CLAIM.expiry("secret", token, 0) is None


def test_another_secret_and_the_end_of_its_time_end_it() -> None:
    assert CLAIM.expiry("other", TOKEN, 0) is None
    assert CLAIM.expiry("secret", TOKEN, 36**3 + 1) is None
