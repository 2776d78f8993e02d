"""Decisions said in words (spec 07 §9): a whole message is yes or no, or it is an ordinary message."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

UNSEEN = re.compile(
    r"[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u00ad]"
)  # shown as nothing, or as an order of signs
ID = re.compile(r"(?: #(?P<id>\S+))?")
LEAST_OF_AN_ID = 6  # characters behind `proposal-` that may stand for the whole
PREFIX = "proposal-"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionVocabulary:
    """Whole words and phrases of a language, in any case: yes, no, and what a yes adds to be remembered."""

    yes: tuple[str, ...]
    no: tuple[str, ...]
    remember: tuple[str, ...] = ()


PRESETS = {
    "en": DecisionVocabulary(
        yes=("yes", "confirm", "approve", "approved", "ok"),
        no=("no", "cancel", "reject", "deny"),
        remember=("always in this conversation",),
    ),
    "pt-BR": DecisionVocabulary(
        yes=("sim", "confirmo", "confirmar", "aprovar", "aprovado", "ok"),
        no=("não", "nao", "cancelar", "rejeitar", "recusar", "negar"),
        remember=("sempre nesta conversa",),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A decision in words; `id` is what stood behind `#`."""

    approves: bool
    id: str | None = None
    remember: bool = False


def understood(message: str, vocabularies: Iterable[str | DecisionVocabulary]) -> Said | None:
    """The decision that the whole message is; None for every other message. A word on both lists is a no.

    A vocabulary is one of `PRESETS` by its name, or a site's own.
    """
    text = _plain(message)
    text = text[:-1].rstrip() if text.endswith((".", "!")) else text
    known = [PRESETS[each] if isinstance(each, str) else each for each in vocabularies]
    for word in _longest_first(word for each in known for word in each.no):
        if (found := _rest(text, word, ())) is not None:
            return Said(approves=False, id=found[0])
    phrases = _longest_first(phrase for each in known for phrase in each.remember)
    for word in _longest_first(word for each in known for word in each.yes):
        if (found := _rest(text, word, phrases)) is not None:
            return Said(approves=True, id=found[0], remember=found[1])
    return None


def names(said_id: str, proposal_id: str) -> bool:
    """Whether what was said stands for the proposal: its id, or enough of the characters that make it one."""
    if said_id == proposal_id:
        return True
    start = said_id.removeprefix(PREFIX)
    return len(start) >= LEAST_OF_AN_ID and proposal_id.removeprefix(PREFIX).startswith(start)


def _rest(text: str, word: str, phrases: Sequence[str]) -> tuple[str | None, bool] | None:
    """What stands behind the word: an id, and whether to remember; None when it is anything else."""
    if not (text == word or text.startswith(f"{word} ")):
        return None
    match = ID.match(text, len(word))
    assert match is not None  # it may be empty
    rest = text[match.end() :].strip()
    if rest and rest not in phrases:
        return None
    return match["id"], bool(rest)


def _longest_first(words: Iterable[str]) -> list[str]:
    return sorted({_plain(word) for word in words}, key=len, reverse=True)


def _plain(text: str) -> str:
    """One form for what looks the same: full-width letters, case, signs that are not seen, runs of spaces."""
    shown = UNSEEN.sub("", unicodedata.normalize("NFKC", text)).casefold()
    return " ".join(unicodedata.normalize("NFKC", shown).split())
