"""The console in the languages that it comes with: whole catalogues, compiled, and a page that speaks them."""

from __future__ import annotations

import ast
import gettext
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import translation

from tests.console.pages import text
from tests.governance.rows import entry

ROOT = Path(__file__).resolve().parents[2]
LOCALE = ROOT / "governance" / "locale"
OF_RUNS = ROOT / "agent" / "locale"  # what the page of a run tells
both = pytest.mark.parametrize("locale", [LOCALE, OF_RUNS], ids=["console", "runs"])
PLACE = re.compile(r"%\(\w+\)s|%%")
ENTRY = re.compile(r'(?m)^(msgid|msgid_plural|msgstr(?:\[\d\])?) ((?:".*"\n?)+)')


def entries(language: str, locale: Path = LOCALE) -> list[list[str]]:
    """Each entry of a catalogue: its words and its translations, one after the other."""
    source = (locale / language / "LC_MESSAGES" / "django.po").read_text()
    found = []
    for block in source.split("\n\n")[1:]:
        texts = ["".join(re.findall(r'"(.*)"', quoted)) for _, quoted in ENTRY.findall(block)]
        found.append(texts)
    return found


@both
@pytest.mark.once
def test_portuguese_is_whole_and_keeps_every_placeholder(locale: Path) -> None:
    for words in entries("pt_BR", locale):
        assert all(words), words
        half = len(words) // 2
        for original, translated in zip(words[:half], words[half:], strict=True):
            assert sorted(PLACE.findall(original)) == sorted(PLACE.findall(translated)), original


@pytest.mark.once
def test_both_catalogues_have_the_same_words() -> None:
    assert {words[0] for words in entries("en")} == {words[0] for words in entries("pt_BR")}


@pytest.mark.once
def test_every_word_of_a_runs_story_has_its_translation() -> None:
    known = {words[0] for words in entries("pt_BR", OF_RUNS)}
    for name in ("story", "durations"):
        for node in ast.walk(ast.parse((ROOT / "agent" / "admin" / f"{name}.py").read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and "gettext" in node.func.id:
                said = node.args[0]
                assert isinstance(said, ast.Constant)
                assert said.value in known


@both
@pytest.mark.once
def test_what_is_compiled_is_what_is_written(locale: Path) -> None:
    with (locale / "pt_BR" / "LC_MESSAGES" / "django.mo").open("rb") as compiled:
        catalogue = gettext.GNUTranslations(compiled)
    for words in entries("pt_BR", locale):
        if len(words) == 2:
            assert catalogue.gettext(words[0].replace('\\"', '"')) == words[1].replace('\\"', '"')
        else:
            assert catalogue.ngettext(words[0], words[1], 1) == words[2]
            assert catalogue.ngettext(words[0], words[1], 2) == words[3]


@pytest.mark.django_db
def test_a_page_speaks_the_language_that_is_asked_for(finance: Client) -> None:
    entry(estimated_cost_nanos=1_234_560_000_000)
    days: dict[str, Any] = {"fromDay": "2026-06-01", "toDay": "2026-06-30"}
    finance.defaults["HTTP_ACCEPT_LANGUAGE"] = "pt-br"
    with translation.override("en"):  # puts back what the request leaves behind
        page = text(finance, "/admin/governance/spend/", **days)
    assert "$1.234,56 sem dados para comparar com os 30 dias anteriores" in page
    assert "Por modelo" in page
    assert "Baixar CSV" in page
