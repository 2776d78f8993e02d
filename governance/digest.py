"""An e-mail to each approver when something new waits for them (spec 07 §12): once, and only what they may decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.core.mail import send_mail
from django.db import transaction
from django.utils import timezone, translation
from django.utils.translation import gettext, ngettext

from agent.domain.text import visible
from governance.admin.console import words
from governance.days import DayRange
from governance.inbox import Desk
from governance.models import DigestMark
from governance.permissions import DECIDE, INBOX
from governance.queries.records import ApprovalRow
from governance.queries.selection import Selection
from governance.queries.waiting import Item, rows_of

SHOWN = 20  # in one letter; of the others it says how many there are
TITLE = 120
NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    to: str
    subject: str
    body: str


def mail_approvers(inbox: str) -> int:
    """Write to whoever may decide something that came since they were told last; how many letters.

    `inbox` is the whole address of the page. A letter that cannot be sent is not tried again: what waits stays in the
    inbox, and the next new thing is told with it.
    """
    sent = 0
    for user, desk in _approvers():
        mine = desk.waiting(_everything(), {}).mine
        if mine and _claimed(desk.actor.ref, mine[-1].at):
            letter = _letter(user.email, mine, inbox)
            sent += send_mail(letter.subject, letter.body, None, [letter.to], fail_silently=True)
    return sent


def _approvers() -> Iterator[tuple[Any, Desk]]:
    """Active staff with an address who may see and decide; a superuser by what they are asked for, not by power."""
    users = get_user_model()._default_manager.filter(is_active=True, is_staff=True).exclude(email="").order_by("pk")
    for user in users.iterator():
        if user.has_perm(INBOX) and user.has_perm(DECIDE):
            desk = Desk.of_user(user)
            if desk is not None:
                yield user, desk


def _claimed(ref: str, newest: datetime) -> bool:
    """Whether this letter is ours to write: of two processes one moves the mark."""
    with transaction.atomic():
        DigestMark.objects.get_or_create(actor_ref=ref, defaults={"told_until": NEVER})
        return DigestMark.objects.filter(actor_ref=ref, told_until__lt=newest).update(told_until=newest) == 1


def _letter(to: str, mine: Sequence[Item], inbox: str) -> Letter:
    with translation.override(None):
        count = len(mine)
        subject = ngettext("%(n)s action waits for your decision", "%(n)s actions wait for your decision", count)
        rows = rows_of(mine[-SHOWN:], _everything(), None)
        lines = [_line(row) for row in rows]
        if count > SHOWN:
            lines.append(gettext("… and %(n)s older ones.") % {"n": words.number(count - SHOWN)})
        return Letter(to=to, subject=subject % {"n": words.number(count)}, body="\n".join([*lines, "", inbox, ""]))


def _line(row: ApprovalRow) -> str:
    """What it is called and how long there is; never its arguments, which stay in the console."""
    title = visible(str((row.confirmation or {}).get("title") or row.tool_name)).replace("\n", " ")
    return f"- {title[:TITLE]} ({words.left(row.expires_at, timezone.now())})"


def _everything() -> Selection:
    return Selection.of(DayRange.of())
