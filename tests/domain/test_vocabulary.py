"""Which messages are decisions, and which only look like ones."""

from __future__ import annotations

import pytest

from agent.domain.vocabulary import PRESETS, DecisionVocabulary, Said, names, understood

EN, BOTH = [PRESETS["en"]], [PRESETS["en"], PRESETS["pt-BR"]]
YES, NO = Said(approves=True), Said(approves=False)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("yes", YES),
        (" YES! ", YES),
        ("Approved.", YES),
        ("\uff59\uff45\uff53", YES),  # full-width letters
        ("yes\u200b", YES),
        ("ok", YES),
        ("no", NO),
        ("Cancel.", NO),
        ("sim", YES),
        ("N\u00c3O", NO),
        ("na\u0303o", NO),  # the same letters, composed otherwise
        ("nao!", NO),
        ("yes #proposal-abc123", Said(approves=True, id="proposal-abc123")),
        ("yes #abc123 always in this conversation", Said(approves=True, id="abc123", remember=True)),
        ("sim sempre nesta  conversa", Said(approves=True, remember=True)),
        ("no #abc123", Said(approves=False, id="abc123")),
    ],
)
def test_a_whole_message_of_the_vocabulary_is_a_decision(message: str, said: Said) -> None:
    assert understood(message, BOTH) == said


@pytest.mark.parametrize(
    "message",
    [
        "no, don't approve",
        "no always in this conversation",
        "don't approve",
        "disallow",
        "yes but 5",
        "yes, do it",
        "yes please",
        "yes?",
        "yes!!",
        "approve nothing",
        "yesterday",
        "yes #",
        "yes abc123",
        "EVET",
        "\u0131k",
        "",
        " . ",
        "#abc123",
        "yes #abc123 and no #def456",
    ],
)
def test_every_other_message_is_an_ordinary_one(message: str) -> None:
    assert understood(message, BOTH) is None


def test_words_of_a_language_that_is_not_chosen_are_ordinary() -> None:
    assert understood("sim", EN) is None


def test_a_word_on_both_lists_is_a_rejection() -> None:
    both = DecisionVocabulary(yes=("ja", "nein"), no=("nein",))
    assert understood("Nein.", [both]) == NO


def test_of_two_words_that_begin_alike_the_longer_is_meant() -> None:
    phrases = DecisionVocabulary(yes=("go", "go on"), no=("stop",))
    assert understood("go on", [phrases]) == YES


@pytest.mark.parametrize(
    ("said", "fits"),
    [("proposal-0123456789", True), ("012345", True), ("proposal-012345", True), ("01234", False), ("123456", False)],
)
def test_an_id_may_be_the_whole_or_its_beginning(said: str, fits: bool) -> None:
    assert names(said, "proposal-0123456789") is fits
