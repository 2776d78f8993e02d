"""Questions to the user and what counts as an answer (spec 07 §6). Questions are JSON, as the call holds them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import urlsplit

from agent.errors import Invalid

ASK = "ask"  # the built-in tool's name
ASKED_MOST = 5  # by a model at once
QUESTIONS_MOST = 100
VALUES_MOST = 100
VALUE_MOST = 4096
MATCHED_MOST = 256  # characters that a pattern is tried on
PATTERN_MOST = 100
_SLOW = re.compile(r"\)\s*[*+{]|\\[1-9]|\(\?P=")  # a repeated group or a back-reference may run for ever

Question = Mapping[str, Any]
Answers = dict[str, list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What holds for each question, and which of them took their default."""

    answers: Answers
    defaulted: list[str]


def question_problems(questions: Sequence[Question], *, assumes: bool = True) -> list[str]:
    """What is wrong with questions before anybody is asked; `assumes`: a choice needs what holds if nobody chooses."""
    ids = [question["id"] for question in questions]
    found = [f"the id {name!r} is used twice" for name in sorted({name for name in ids if ids.count(name) > 1})]
    return found + [f"{question['id']}: {text}" for question in questions for text in _problems(question, assumes)]


def _problems(question: Question, assumes: bool) -> list[str]:
    options, defaults = question.get("options"), question.get("defaults")
    pattern = (question.get("input") or {}).get("pattern")
    if options is not None and not options:
        return ["options are at least one"]
    if assumes and options and not defaults:
        return ["a question with options needs defaults"]
    if pattern is not None and (problem := _pattern_problem(pattern)):
        return [problem]
    return [f"default: {problem}"] if defaults and (problem := _refusal(question, defaults)) else []


def _pattern_problem(pattern: str) -> str | None:
    if len(pattern) > PATTERN_MOST or _SLOW.search(pattern):
        return f"pattern has at most {PATTERN_MOST} characters, no repeated groups and no back-references"
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return "pattern is no regular expression"
    return None


def take(questions: Sequence[Question], given: object) -> Taken:
    """The answers with the defaults of the omitted questions; `Invalid` names each field that is wrong."""
    answers = _shaped(given)
    known = {question["id"]: question for question in questions}
    wrong = {name: "there is no such question" for name in answers if name not in known}
    for name, question in known.items():
        values: list[str] = answers[name] if name in answers else list(question.get("defaults") or ())
        if name not in wrong and (problem := _refusal(question, values)):
            wrong[name] = problem
    if wrong:
        fields = {f"answers.{name}": [text] for name, text in wrong.items()}
        raise Invalid("; ".join(f"{name}: {text}" for name, text in wrong.items()), fields=fields)
    return assumed(questions, answers)


def assumed(questions: Sequence[Question], answers: Answers) -> Taken:
    """The answers, and the defaults of every question that has none."""
    return Taken(
        answers={each["id"]: answers.get(each["id"], list(each.get("defaults") or ())) for each in questions},
        defaulted=[each["id"] for each in questions if each["id"] not in answers],
    )


def summary(questions: Sequence[Question], answers: Answers) -> str:
    """The questions with the labels of their answers, one a line."""
    return "\n".join(f"{each['prompt']} {_labels(each, answers[each['id']])}" for each in questions)


def _labels(question: Question, values: Sequence[str]) -> str:
    labels = {option["value"]: option["label"] for option in question.get("options") or ()}
    return ", ".join(labels.get(value, value) for value in values) or "-"


def _shaped(given: object) -> Answers:
    if not isinstance(given, Mapping) or len(given) > QUESTIONS_MOST:
        raise Invalid.field("answers", f"an object of at most {QUESTIONS_MOST} lists of texts")
    for name, values in given.items():
        if not isinstance(values, list) or len(values) > VALUES_MOST or not all(map(_is_value, values)):
            text = f"a list of at most {VALUES_MOST} texts of at most {VALUE_MOST} characters"
            raise Invalid.field(f"answers.{name}", text)
    return {str(name): list(values) for name, values in given.items()}


def _is_value(value: object) -> bool:
    return isinstance(value, str) and len(value) <= VALUE_MOST


def _refusal(question: Question, values: Sequence[str]) -> str | None:
    """Why these values are no answer; None when they are."""
    rule = question.get("input") or {}
    if rule.get("required") and not any(value.strip() for value in values):
        return "an answer is required"
    if len(values) > 1 and not question.get("multiple"):
        return "one value at most"
    options = [option["value"] for option in question.get("options") or ()]
    free = not options or question.get("allowFreeText")
    for value in values:
        if value not in options and not free:
            return f"one of {', '.join(options)}"
        if value not in options and value != "" and (problem := _misfit(rule, value)):
            return problem
    return None


def _misfit(rule: Mapping[str, Any], value: str) -> str | None:
    kind, least, most = rule.get("type", "text"), rule.get("min"), rule.get("max")
    problem = KINDS.get(kind, _any)(value)
    if problem is None and (least is not None or most is not None):
        size = float(value) if kind == "number" else len(value)
        if (least is not None and size < least) or (most is not None and size > most):
            problem = f"between {_bound(least)} and {_bound(most)}" + ("" if kind == "number" else " characters")
    pattern = rule.get("pattern")
    if problem is None and pattern and not (len(value) <= MATCHED_MOST and re.fullmatch(pattern, value)):
        problem = f"must match {pattern}"
    return problem


def _bound(value: float | None) -> str:
    return "any" if value is None else f"{value:g}"


def _any(value: str) -> str | None:
    return None


def _number(value: str) -> str | None:
    try:
        return None if math.isfinite(float(value)) else "a number"
    except ValueError:
        return "a number"


def _date(value: str) -> str | None:
    try:
        date.fromisoformat(value)
    except ValueError:
        return "a date like 2026-03-01"
    return None


def _email(value: str) -> str | None:
    name, _, host = value.rpartition("@")
    return None if name and "." in host and not re.search(r"\s", value) else "an e-mail address"


def _url(value: str) -> str | None:
    try:
        parts = urlsplit(value)
    except ValueError:
        return "an address"
    return None if parts.scheme in {"http", "https"} and parts.netloc else "an address with http or https"


def _boolean(value: str) -> str | None:
    return None if value in {"true", "false"} else "true or false"


KINDS: Mapping[str, Callable[[str], str | None]] = {
    "number": _number,
    "date": _date,
    "email": _email,
    "url": _url,
    "boolean": _boolean,
}
