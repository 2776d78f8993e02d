"""What waits for a decision, as a card that a person understands in five seconds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.translation import gettext

from agent.domain.approvals import asked_of
from agent.domain.snapshots import Json
from agent.domain.states import ExecutionStatus
from agent.domain.text import visible
from governance.admin.console import words
from governance.admin.console.base import Visit
from governance.admin.console.parts import Said
from governance.inbox import FOUR_EYES, PERMISSION, Desk
from governance.permissions import RELIABILITY, SPEND
from governance.queries.records import ApprovalRow
from governance.queries.waiting import QUESTION

SOON = timedelta(hours=1)
PAIRS, PAIR_LENGTH = 8, 80  # arguments that fit on a line: more, or longer ones, are read as JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """Names for refs; asked once a page."""

    labels: Mapping[str, str]

    def __call__(self, ref: str) -> str:
        return visible(self.labels.get(ref, ref))


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    prompt: str
    default: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalCard:
    """What the template prints. Texts are what people, models and tools wrote, with what is not seen written out."""

    id: str
    url: str
    action: str  # where a decision is sent to
    digest: str
    kind: str
    title: str
    detail: str
    left: Said
    asked: Sequence[Said]
    tool: str
    arguments: Sequence[tuple[str, str]]  # all of them, where they fit on a line
    exact: str
    questions: Sequence[Question]
    looked_at: str
    cost: Said | None
    yes: str
    no: str
    may_remember: bool
    decidable: bool
    hindrance: str  # why not, and who may
    unknown: bool  # nobody knows what became of it: a person has to say
    told: Sequence[Said] = ()  # what was decided, and what became of it
    under_way: bool = False
    problem: str = ""  # why the last attempt to decide did nothing


def pending_card(
    visit: Visit, desk: Desk, row: ApprovalRow, people: People, looked_at: Mapping[str, Mapping[str, int]]
) -> ApprovalCard:
    """A card that waits."""
    subject = row.proposal_id or row.tool_call_id or ""
    said = row.confirmation or {}
    hindrance = desk.hindrance(row.approver, row.actor_ref, row.tenant_ref, four_eyes=row.four_eyes)
    question = row.kind == QUESTION
    return ApprovalCard(
        id=subject,
        url=visit.url("approval", subject),
        action=visit.url("approvals") + visit.asked.query(),
        digest=row.digest or "",
        kind=row.kind,
        title=_title(row),
        detail=visible(str(said.get("detail") or "")),
        left=_left(row.expires_at),
        asked=list(_asked(visit, row, people)),
        tool=visible(row.tool_name),
        arguments=_pairs(row.input),
        exact=_exact(row.input),
        questions=_questions(row.input) if question else (),
        looked_at=_looked(looked_at.get(row.run_id or "", {})),
        cost=_cost(row) if visit.may(SPEND) else None,
        yes=gettext("Answer with the defaults") if question else visible(str(said.get("verb") or gettext("Approve"))),
        no=gettext("Skip") if question else gettext("Reject"),
        may_remember=not question and not row.four_eyes,
        decidable=not hindrance,
        hindrance=_hindered(hindrance, row.approver, people(row.actor_ref)),
        unknown=row.execution == ExecutionStatus.UNKNOWN,
    )


def _title(row: ApprovalRow) -> str:
    said = row.confirmation or {}
    if row.kind == QUESTION:
        return gettext("The agent asks a question")
    return visible(str(said.get("title") or row.tool_name))


def _left(expires_at: datetime | None) -> Said:
    now = timezone.now()
    soon = expires_at is not None and expires_at - now < SOON
    title = "" if expires_at is None else words.exact_time(expires_at)
    return Said(text=words.left(expires_at, now), title=title, mark="warn" if soon else "")


def _asked(visit: Visit, row: ApprovalRow, people: People) -> Iterator[Said]:
    yield Said(text=gettext("asked by %(who)s") % {"who": people(row.actor_ref)}, title=visible(row.actor_ref))
    if row.agent_name:
        yield Said(text=gettext("through agent “%(agent)s”") % {"agent": visible(row.agent_name)})
    yield Said(text=words.ago(row.requested_at, timezone.now()), title=words.exact_time(row.requested_at))
    if row.tenant_ref is not None:
        yield Said(text=gettext("tenant %(tenant)s") % {"tenant": visible(row.tenant_ref) or "“”"})
    title = visible(words.title(row.thread_title, row.thread_id))
    readable = visit.may(SPEND) or visit.may(RELIABILITY)
    told = gettext("conversation “%(title)s”") % {"title": title} if row.thread_title else title
    yield Said(text=told, href=visit.url("thread", row.thread_id) if readable else "", title=row.thread_id)
    if row.run_id is not None and visit.may(RELIABILITY):
        yield Said(text=gettext("the run"), href=visit.url("run", row.run_id), title=row.run_id)


def _pairs(given: Json) -> list[tuple[str, str]]:
    """Arguments as names and values, if a line can hold all there is to them; else nothing."""
    if not isinstance(given, dict) or len(given) > PAIRS:
        return []
    flat = [(name, _flat(value)) for name, value in given.items()]
    if any(text is None or len(name) + len(text) > PAIR_LENGTH for name, text in flat):
        return []
    return [(visible(name), visible(text or "")) for name, text in flat]


def _flat(value: Json) -> str | None:
    if isinstance(value, dict | list):
        return None
    return value if isinstance(value, str) else json.dumps(value)


def _exact(given: Json) -> str:
    """All of it, as indented JSON; what is not seen is written out, which JSON reads alike."""
    return visible(json.dumps(given, indent=2, ensure_ascii=False))


def _questions(given: Json) -> list[Question]:
    asked = given.get("questions", []) if isinstance(given, dict) else []
    return [
        Question(prompt=visible(str(each.get("prompt", ""))), default=visible(", ".join(each.get("defaults") or ())))
        for each in asked
    ]


def _looked(tools: Mapping[str, int]) -> str:
    return ", ".join(f"{visible(name)} ({words.number(count)})" for name, count in tools.items())


def _cost(row: ApprovalRow) -> Said:
    exact = "" if row.cost_nanos is None else words.exact_dollars(row.cost_nanos)
    return Said(text=words.cost(row.cost_nanos, row.unpriced_requests), title=exact)


def _hindered(why: str, approver: str | None, requester: str) -> str:
    if not why:
        return ""
    if why == FOUR_EYES:
        return gettext("You asked for this yourself: under four eyes somebody else decides it.")
    if why == PERMISSION:
        return gettext("You may look at this, not decide it. %(who)s") % {"who": who_may(approver, requester)}
    return who_may(approver, requester)


def who_may(approver: str | None, requester: str) -> str:
    """The approver as a sentence."""
    if approver is None:
        return gettext("Only %(who)s can answer.") % {"who": requester}
    form, name = asked_of(approver)
    if form == "requester":
        return gettext("Waits for %(who)s, who asked for it.") % {"who": requester}
    if form == "permission":
        return gettext("Waits for somebody with the permission %(name)s.") % {"name": visible(name)}
    return gettext("Waits for somebody with the role %(name)s.") % {"name": visible(name)}
