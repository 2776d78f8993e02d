"""The console, the chat page and the admin in the languages they come with: whole catalogues, compiled and spoken."""

from __future__ import annotations

import ast
import gettext
import re
from pathlib import Path
from typing import Any

import pytest
from django.template.loader import render_to_string
from django.test import Client
from django.utils import translation
from django.utils.translation.template import templatize

from agent.models import ToolCall
from tests.console.pages import text
from tests.governance.rows import entry

ROOT = Path(__file__).resolve().parents[2]
LOCALE = ROOT / "governance" / "locale"
both = pytest.mark.parametrize("locale", [LOCALE, ROOT / "agent" / "locale"], ids=["console", "agent"])
GETTEXT = {"_", "gettext", "gettext_lazy", "ngettext", "ngettext_lazy"}
PLACE = re.compile(r"%\(\w+\)s|%%|\{\w*\}")
CALL = re.compile(r"""\b(?:n?gettext|_)\(u?('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
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


def marked(text: str) -> set[str]:
    """The words that some Python hands to gettext."""
    return {
        str(ast.literal_eval(node.args[0]))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in GETTEXT and node.args
    }


def marked_in_templates(folder: Path) -> set[str]:
    """The words that templates hand to gettext, as `makemessages` finds them."""
    calls = [
        found
        for path in folder.rglob("*.html")
        for found in CALL.findall(templatize(path.read_text(), origin=str(path)))
    ]
    return {str(ast.literal_eval(found)) for found in calls}


@both
@pytest.mark.once
def test_both_catalogues_have_all_that_is_marked_and_nothing_else(locale: Path) -> None:
    app = locale.parent
    words = marked_in_templates(app).union(*(marked(path.read_text()) for path in app.rglob("*.py")))
    for language in ("en", "pt_BR"):
        assert {each[0].replace('\\"', '"') for each in entries(language, locale)} == words


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


@pytest.mark.once
def test_the_chat_page_and_the_tables_speak_it_too() -> None:
    with translation.override("pt-br"):
        page = render_to_string("agent/chat.html")
        assert str(ToolCall._meta.verbose_name) == "chamada de ferramenta"
    assert "Escreva uma mensagem" in page
    assert "É preciso decidir: {title}" in page
    assert "Write a message" not in page
