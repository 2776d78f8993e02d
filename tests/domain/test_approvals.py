"""What an approval may ask for, and what is refused before anybody is asked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.domain.approvals import Requirement, approver_problem, asked_of
from agent.errors import Invalid

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("approver", "form", "name"),
    [
        ("requester", "requester", "requester"),
        ("billing.approve_refund", "permission", "billing.approve_refund"),
        ("lead", "role", "lead"),
        ("role:lead", "role", "lead"),
        ("role:requester", "role", "requester"),
        ("role:emea.lead", "role", "emea.lead"),
        ("Requester", "role", "Requester"),
    ],
)
def test_an_approver_is_the_requester_a_permission_or_a_role(approver: str, form: str, name: str) -> None:
    assert asked_of(approver) == (form, name)
    assert approver_problem(approver) is None


@pytest.mark.parametrize("approver", ["", " ", "\u200b", "role:", "role: ", None, 7, "x" * 256, "a\x00b", "a\ud800"])
def test_an_approver_that_nobody_can_be_is_refused(approver: Any) -> None:
    assert approver_problem(approver) is not None
    with pytest.raises(Invalid, match="approver"):
        Requirement(required=True, approver=approver)


@pytest.mark.parametrize(
    "ttl",
    [
        0,
        -1,
        60,
        60.0,
        "1h",
        float("nan"),
        10**12,
        NOW,
        NOW.replace(tzinfo=None),
        timedelta(0),
        timedelta(seconds=-1),
        timedelta(microseconds=999),
        timedelta(seconds=10**12),
        timedelta.max,
    ],
)
def test_a_ttl_that_is_no_time_or_no_end_is_refused(ttl: Any) -> None:
    with pytest.raises(Invalid, match="ttl"):
        Requirement(required=True, ttl=ttl)


@pytest.mark.parametrize("flags", [{"required": 1}, {"required": None}, {"required": True, "four_eyes": "no"}])
def test_an_answer_that_is_not_clearly_yes_or_no_is_refused(flags: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="required"):
        Requirement(**flags)


def test_four_eyes_and_the_requester_cannot_be_asked_for_together() -> None:
    with pytest.raises(Invalid, match="four_eyes"):
        Requirement(required=True, four_eyes=True)
    assert Requirement(required=True, approver="lead", four_eyes=True).four_eyes


def test_a_deadline_is_whole_milliseconds_from_now_or_there_is_none() -> None:
    assert Requirement(required=True).deadline(NOW) is None
    floored = Requirement(required=True, ttl=timedelta(milliseconds=1, microseconds=999))
    assert floored.deadline(NOW) == NOW + timedelta(milliseconds=1)
    longest = Requirement(required=True, ttl=timedelta(days=36525))
    assert longest.deadline(NOW) == NOW + timedelta(days=36525)
