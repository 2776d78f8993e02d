from __future__ import annotations

import pytest

from agent.domain.titles import title_for, wants_title


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("  where is\n my   lamp? ", "where is my lamp?"),
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 57 + "..."),
        (" \n ", "New chat"),
    ],
)
def test_the_users_words_on_one_line(text: str, title: str) -> None:
    assert title_for(text) == title


def test_only_untitled_conversations_get_one() -> None:
    assert [wants_title(title) for title in ("", "New chat", "Lamp")] == [True, True, False]
