"""What the approval of an action asks for: whose word, until when (spec 07 §1-2)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from agent.domain.actor import REF_MAX, Owner
from agent.domain.text import is_blank, is_exact
from agent.errors import Invalid

REQUESTER = "requester"
ROLE = "role:"
MILLISECOND = timedelta(milliseconds=1)
LONGEST = timedelta(days=36525)  # a hundred years: what is longer was a slip of the pen


class Asked(NamedTuple):
    """An approver's form and what it names: the thread's own actor, a Django permission, or a role."""

    form: Literal["requester", "permission", "role"]
    name: str


def asked_of(approver: str) -> Asked:
    """How an approver is written: `requester`, `role:<name>`, `app.codename`, or a bare role."""
    if approver == REQUESTER:
        return Asked("requester", approver)
    if approver.startswith(ROLE):
        return Asked("role", approver.removeprefix(ROLE))
    return Asked("permission" if "." in approver else "role", approver)


def approver_problem(approver: object) -> str | None:
    """What is wrong with an approver; None when somebody may answer to it."""
    if not isinstance(approver, str) or is_blank(approver) or is_blank(asked_of(approver).name):
        return "approver is blank: requester, a role or a permission like app.codename"
    if len(approver) > REF_MAX or not is_exact(approver):
        return f"approver has at most {REF_MAX} characters, without NUL"
    return None


def _is_ttl(value: object) -> bool:
    return value is None or (isinstance(value, timedelta) and MILLISECOND <= value <= LONGEST)


@dataclass(frozen=True, slots=True)
class Requirement:
    """Whether a call waits for a person, for whom, and how long; what no call could keep is `Invalid`."""

    required: bool
    approver: str = REQUESTER
    ttl: timedelta | None = None  # None = no deadline
    four_eyes: bool = False  # the requester may not decide

    def __post_init__(self) -> None:
        if {type(self.required), type(self.four_eyes)} != {bool}:
            raise Invalid.field("required", "required and four_eyes are True or False")
        if (problem := approver_problem(self.approver)) is not None:
            raise Invalid.field("approver", problem)
        if self.four_eyes and self.approver == REQUESTER:
            raise Invalid.field("approver", "with four_eyes the requester may not be the approver")
        if not _is_ttl(self.ttl):
            raise Invalid.field("ttl", "a timedelta from one millisecond to a hundred years, or None")

    def deadline(self, now: datetime) -> datetime | None:
        """The instant at which nobody may decide any more: whole milliseconds from now."""
        return None if self.ttl is None else now + self.ttl // MILLISECOND * MILLISECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalThread:
    """The conversation in which an action is asked for, as a policy is told of it."""

    id: str
    owner: Owner
    run_id: str
    agent_name: str | None
