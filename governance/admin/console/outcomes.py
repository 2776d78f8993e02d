"""What was decided about a card and what became of it, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.utils import timezone
from django.utils.translation import gettext, ngettext

from agent.domain.states import EXECUTED_TOOL_CALL, ExecutionStatus, ToolCallStatus
from agent.domain.text import visible
from governance.admin.console import words
from governance.admin.console.cards import People
from governance.admin.console.parts import Said
from governance.queries.approval import APPROVED, CLOSED, EXPIRED, PENDING, REJECTED, SUPERSEDED, Act, ApprovalDetail

ABOUT_TO_RUN = frozenset({ExecutionStatus.QUEUED, ToolCallStatus.PENDING_APPROVAL})
RUNNING = frozenset({ExecutionStatus.EXECUTING, ToolCallStatus.RUNNING})
DONE = EXECUTED_TOOL_CALL | {ExecutionStatus.SUCCEEDED}


def outcome(detail: ApprovalDetail, people: People) -> list[Said]:
    """What was decided and how far it is, a sentence each."""
    return [*_decision(detail, people), *_execution(detail), *_settled(detail.settled, people)]


def under_way(detail: ApprovalDetail) -> bool:
    """Whether there is more to come without anybody doing anything."""
    return detail.state == APPROVED and detail.execution in ABOUT_TO_RUN | RUNNING


def _decision(detail: ApprovalDetail, people: People) -> Iterator[Said]:
    decided = detail.decided
    if detail.state == EXPIRED:
        yield Said(text=gettext("Nobody decided in time. Nothing was done."), mark="warn")
    elif detail.state == SUPERSEDED:
        yield Said(text=gettext("Another request took its place. Nothing was done."))
    elif detail.state == CLOSED:
        yield Said(text=gettext("The conversation went on before anybody had decided. Nothing was done."))
    elif decided is not None:
        yield _act(detail.state, decided, people)
        if decided.reason:
            yield Said(text=gettext("Reason: %(reason)s") % {"reason": visible(decided.reason)})
        if decided.remember:
            yield Said(text=gettext("Later calls of this tool in the conversation pass without asking."))


def _act(state: str, act: Act, people: People) -> Said:
    when = "" if act.at is None else words.ago(act.at, timezone.now())
    said = {"who": people(act.by), "via": _via(act.via), "when": when}
    texts = {
        APPROVED: gettext("Approved by %(who)s%(via)s, %(when)s."),
        REJECTED: gettext("Rejected by %(who)s%(via)s, %(when)s. Nothing was done."),
    }
    return Said(text=texts[state] % said, title="" if act.at is None else words.exact_time(act.at))


def _via(channel: str | None) -> str:
    """Over which channel, where it says more than that it was a person before a page."""
    known = {
        "text": gettext(" by a message in the chat"),
        "admin": gettext(" here in the console"),
        "api": gettext(" over the API"),
        "web": gettext(" in the chat"),
        "remembered": gettext(" by an earlier approval"),
    }
    return known.get(channel or "", f" ({visible(channel)})" if channel else "")


def _execution(detail: ApprovalDetail) -> Iterator[Said]:
    if detail.state != APPROVED:
        return
    status, error = detail.execution or "", visible(detail.error or "")
    if status in ABOUT_TO_RUN:
        yield Said(text=gettext("It is about to run."))
    elif status in RUNNING:
        yield Said(text=gettext("It is running."))
    elif status in DONE:
        yield Said(text=gettext("Done."))
    elif status == ExecutionStatus.UNKNOWN:
        told = gettext("Its worker was lost: nobody knows whether it was done. Look at the other end, then say.")
        yield Said(text=told, mark="warn")
    elif status:
        yield Said(
            text=gettext("It failed: %(error)s") % {"error": error or gettext("no reason is known")}, mark="warn"
        )
    if detail.attempts is not None and detail.attempts > 1:
        count = ngettext("%(n)s attempt.", "%(n)s attempts.", detail.attempts)
        yield Said(text=count % {"n": words.number(detail.attempts)})


def _settled(acts: Sequence[Act], people: People) -> Iterator[Said]:
    for act in acts:
        said = {"who": people(act.by), "reason": visible(act.reason or "")}
        yield Said(
            text=gettext("%(who)s said what became of it: %(reason)s") % said,
            title="" if act.at is None else words.exact_time(act.at),
        )


def is_open(detail: ApprovalDetail) -> bool:
    """Whether a person can still do something about it."""
    return detail.state == PENDING or detail.execution == ExecutionStatus.UNKNOWN
