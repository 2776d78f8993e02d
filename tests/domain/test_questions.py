"""What counts as an answer, and which questions nobody could answer."""

from __future__ import annotations

from typing import Any

import pytest

from agent.domain.questions import Taken, assumed, question_problems, summary, take
from agent.errors import Invalid

SIZES = [{"value": "s", "label": "Small"}, {"value": "l", "label": "Large"}]


def question(name: str = "q", **fields: Any) -> dict[str, Any]:
    return {"id": name, "prompt": f"{name}?", **fields}


SIZE = question("size", options=SIZES, defaults=["s"])
NOTE = question("note")


def test_an_omitted_question_takes_its_default_and_says_so() -> None:
    assert take([SIZE, NOTE], {"note": ["hi"]}) == Taken(answers={"size": ["s"], "note": ["hi"]}, defaulted=["size"])
    assert take([SIZE, NOTE], {}) == Taken(answers={"size": ["s"], "note": []}, defaulted=["size", "note"])
    assert assumed([SIZE], {}) == Taken(answers={"size": ["s"]}, defaulted=["size"])


def test_the_summary_speaks_in_labels() -> None:
    assert summary([SIZE, NOTE], {"size": ["l"], "note": []}) == "size? Large\nnote? -"


@pytest.mark.parametrize(
    ("asked", "given", "field"),
    [
        (SIZE, {"other": ["s"]}, "answers.other"),
        (SIZE, {"size": ["m"]}, "answers.size"),
        (SIZE, {"size": ["s", "l"]}, "answers.size"),
        (NOTE, {"note": "hi"}, "answers.note"),
        (NOTE, {"note": [1]}, "answers.note"),
        (NOTE, {"note": ["x" * 4097]}, "answers.note"),
        (NOTE, {"note": ["x"] * 101}, "answers.note"),
        (NOTE, [], "answers"),
        (NOTE, {str(number): [] for number in range(101)}, "answers"),
        (question(input={"required": True}), {}, "answers.q"),
        (question(input={"required": True}), {"q": [" "]}, "answers.q"),
        (question(input={"type": "number"}), {"q": ["two"]}, "answers.q"),
        (question(input={"type": "number"}), {"q": ["nan"]}, "answers.q"),
        (question(input={"type": "number", "min": 1, "max": 5}), {"q": ["6"]}, "answers.q"),
        (question(input={"type": "text", "max": 3}), {"q": ["four"]}, "answers.q"),
        (question(input={"type": "date"}), {"q": ["2026-02-30"]}, "answers.q"),
        (question(input={"type": "email"}), {"q": ["ana"]}, "answers.q"),
        (question(input={"type": "url"}), {"q": ["javascript:alert(1)"]}, "answers.q"),
        (question(input={"type": "url"}), {"q": ["http://[x"]}, "answers.q"),
        (question(input={"type": "boolean"}), {"q": ["yes"]}, "answers.q"),
        (question(input={"pattern": "[a-z]+"}), {"q": ["A"]}, "answers.q"),
        (question(input={"pattern": "[a-z]+"}), {"q": ["a" * 257]}, "answers.q"),
    ],
)
def test_what_is_no_answer_is_refused_by_its_field(asked: dict[str, Any], given: Any, field: str) -> None:
    with pytest.raises(Invalid) as refused:
        take([asked], given)
    assert list(refused.value.fields) == [field]


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (SIZE, {"size": []}),
        (question(options=SIZES, defaults=["s"], multiple=True), {"q": ["s", "l"]}),
        (question(options=SIZES, defaults=["s"], allowFreeText=True), {"q": ["huge"]}),
        (question(input={"type": "number", "min": 1}), {"q": ["1.5"]}),
        (question(input={"type": "date"}), {"q": ["2026-03-01"]}),
        (question(input={"type": "email"}), {"q": ["ana@example.org"]}),
        (question(input={"type": "url"}), {"q": ["https://example.org/a"]}),
        (question(input={"type": "boolean"}), {"q": ["true"]}),
        (question(input={"pattern": "[a-z]+"}), {"q": ["a"]}),
        (question(input={"type": "number"}), {"q": [""]}),
    ],
)
def test_what_fits_is_taken(asked: dict[str, Any], given: dict[str, list[str]]) -> None:
    assert take([asked], given).answers == given


@pytest.mark.parametrize(
    ("questions", "text"),
    [
        ([question(), question()], "used twice"),
        ([question(options=SIZES)], "needs defaults"),
        ([question(options=[])], "at least one"),
        ([question(options=SIZES, defaults=["m"])], "default: one of s, l"),
        ([question(defaults=["a", "b"])], "default: one value"),
        ([question(input={"pattern": "("})], "no regular expression"),
        ([question(input={"pattern": "(a+)+b"})], "no repeated groups"),
        ([question(input={"pattern": r"(a)\1"})], "no back-references"),
        ([question(input={"pattern": "a" * 101})], "at most 100"),
    ],
)
def test_questions_that_nobody_could_answer_are_told(questions: list[dict[str, Any]], text: str) -> None:
    assert text in "; ".join(question_problems(questions))


def test_good_questions_have_no_problems() -> None:
    assert question_problems([SIZE, NOTE, question(input={"type": "number", "min": 1})]) == []
