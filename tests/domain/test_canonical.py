"""Equal values have one text, and what is not JSON has none."""

from __future__ import annotations

import datetime
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.domain.canonical import canonical_json, compact_json, sha256_hex
from agent.errors import Invalid

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
CYCLE: list[object] = []
CYCLE.append(CYCLE)
NOT_JSON = [
    float("nan"),
    float("inf"),
    [float("-inf")],
    {"at": datetime.datetime(2026, 1, 1)},
    {1, 2},
    b"bytes",
    object(),
    CYCLE,
]


def test_the_texts_are_pinned_because_hashes_are_kept() -> None:
    value = {"b": [1, 2.5, None, True], "a": "é😀\x00\ud800", "A": {}}
    assert canonical_json(value) == r'{"A":{},"a":"\u00e9\ud83d\ude00\u0000\ud800","b":[1,2.5,null,true]}'
    assert compact_json(value) == r'{"b":[1,2.5,null,true],"a":"\u00e9\ud83d\ude00\u0000\ud800","A":{}}'
    assert sha256_hex(["proposal", None]) == hashlib.sha256(b'["proposal",null]').hexdigest()
    assert sha256_hex([]) == "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"


@given(VALUES)
def test_canonical_text_reads_back_and_ignores_key_order(value: object) -> None:
    text = canonical_json(value)
    assert text.isascii()
    assert json.loads(text) == value
    assert canonical_json(_turned(value)) == text


@given(VALUES)
def test_compact_text_reads_back_with_its_key_order(value: object) -> None:
    assert repr(json.loads(compact_json(value))) == repr(value)


@pytest.mark.parametrize("value", NOT_JSON, ids=map(str, range(len(NOT_JSON))))
def test_what_is_not_json_is_refused(value: object) -> None:
    with pytest.raises(Invalid):
        compact_json(value)
    with pytest.raises(Invalid):
        canonical_json(value)


@pytest.mark.parametrize("value", [{1: "a"}, [{"deep": {None: 1}}], {True: 1}], ids=repr)
def test_keys_that_are_not_text_have_no_canonical_form(value: object) -> None:
    with pytest.raises(Invalid):
        canonical_json(value)


def test_a_value_nested_beyond_reason_is_refused_not_a_crash() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(Invalid):
        canonical_json(value)


def _turned(value: object) -> object:
    """The same value with every dict in the opposite order."""
    if isinstance(value, dict):
        return {key: _turned(item) for key, item in reversed(value.items())}
    return [_turned(item) for item in value] if isinstance(value, list) else value
