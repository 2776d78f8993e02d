"""Letters to approvers: what they may decide, once, without arguments."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core import mail
from django.core.management import CommandError, call_command

from agent.domain.actor import Actor
from tests.console.test_approvals import proposed

pytestmark = pytest.mark.django_db

INBOX = "https://steward.example/admin/governance/approvals/"


@pytest.fixture
def lead() -> User:
    user = User.objects.create_user("lead", "lead@example.test", is_staff=True)
    user.groups.add(Group.objects.create(name="lead"))
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_actionproposal", "decide_actionproposal"]))
    return user


def letters() -> list[tuple[list[str], str]]:
    call_command("governance_mail_approvals", INBOX, verbosity=0)
    found = [(letter.to, f"{letter.subject}\n{letter.body}") for letter in mail.outbox]
    mail.outbox.clear()
    return found


@pytest.mark.usefixtures("lead")
def test_an_approver_is_told_once_of_what_is_theirs_to_decide() -> None:
    User.objects.create_user("other", "other@example.test", is_staff=True)
    proposed("1", confirmation={"title": "Refund \u202e1042", "verb": "Refund"}, input={"card": "4242"})
    proposed("2", approver="role:director")
    [(to, text)] = letters()
    assert to == ["lead@example.test"]
    assert text.startswith("1 action waits for your decision\n- Refund \\u202e1042 (no deadline)\n")
    assert INBOX in text
    assert "4242" not in text
    assert letters() == []
    proposed("3")
    [(_, again)] = letters()
    assert again.startswith("2 actions wait for your decision\n")


def test_nobody_is_told_of_their_own_request_under_four_eyes(lead: User) -> None:
    proposed("1", actor=Actor(str(lead.pk)), four_eyes=True)
    assert letters() == []


def test_an_account_that_is_closed_gets_no_letter(lead: User) -> None:
    User.objects.filter(pk=lead.pk).update(is_active=False)
    proposed()
    assert letters() == []


def test_the_address_of_the_inbox_is_a_whole_one() -> None:
    with pytest.raises(CommandError, match="https://"):
        call_command("governance_mail_approvals", "/admin/")
