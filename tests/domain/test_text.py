"""What cannot be stored is told apart, or replaced by a visible mark."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.domain.text import clean_cut, clean_text, is_exact, visible

STORABLE = ["", "plain", "trailing ", "naïve", "😀", "\u202eright to left", "\ufffd", "\ufffe", "line\nline\ttab\x01"]
UNSTORABLE = [
    ("\x00", "\ufffd"),
    ("a\x00b\x00", "a\ufffdb\ufffd"),
    ("\ud800", "\ufffd"),
    ("é\udfffé", "é\ufffdé"),
    ("\udc00\ud800\x00😀", "\ufffd\ufffd\ufffd😀"),
]


@pytest.mark.parametrize("text", STORABLE)
def test_storable_text_is_left_alone(text: str) -> None:
    assert is_exact(text)
    assert clean_text(text) is text


@pytest.mark.parametrize(("text", "cleaned"), UNSTORABLE)
def test_nul_and_lone_surrogates_become_a_mark(text: str, cleaned: str) -> None:
    assert not is_exact(text)
    assert clean_text(text) == cleaned


@given(st.text(st.characters()))
def test_clean_text_can_always_be_stored(text: str) -> None:
    cleaned = clean_text(text)
    assert is_exact(cleaned)
    assert len(cleaned) == len(text)
    assert (cleaned == text) == is_exact(text)
    assert clean_text(cleaned) == cleaned


def test_a_name_is_cut_to_its_column() -> None:
    assert clean_cut("ab\x00cd", 3) == "ab\ufffd"
    assert clean_cut("ab", 3) == "ab"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Two\nlines, ünïcode, 世界 😀", "Two\nlines, ünïcode, 世界 😀"),
        ("safe\u202egnp.exe", r"safe\u202egnp.exe"),
        ("a\u200bb\x07c", r"a\u200bb\u0007c"),
        ("lone \ud800", r"lone \ud800"),
        ("tag \U000e0041", r"tag \udb40\udc41"),
    ],
)
def test_what_is_not_seen_itself_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown
