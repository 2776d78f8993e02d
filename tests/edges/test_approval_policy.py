"""Who may decide, as it comes: the requester, a role, a permission of today's user; never across tenants."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import override_settings
from pydantic import BaseModel

from agent.approvals import DefaultApprovalPolicy
from agent.domain.actor import Actor, Owner
from agent.domain.approvals import ApprovalThread, Requirement
from agent.registry import Registry, Tool, ToolDefinition, isolated_registry, tool

ANA = Owner("ana", None)
POLICY = DefaultApprovalPolicy()


class Nothing(BaseModel):
    pass


def declared(registry: Registry, **options: Any) -> ToolDefinition:
    members = {"__doc__": "Opens the vault.", "execute": lambda self: None}
    tool(name="vault", kind="action", **options)(type("Vault", (Tool,), members))
    found = registry.tool("vault")
    assert found is not None
    return found


def asked(**options: Any) -> Requirement:
    with isolated_registry() as registry:
        thread = ApprovalThread(id="t", owner=ANA, run_id="r", agent_name=None)
        return POLICY.requirement_for(declared(registry, **options), Nothing(), Actor("ana"), thread)


def test_every_action_waits_unless_its_tool_says_otherwise() -> None:
    assert asked() == Requirement(required=True, approver="requester")
    assert asked(approver="lead", four_eyes=True) == Requirement(required=True, approver="lead", four_eyes=True)
    assert asked(requires_approval=False) == Requirement(required=False)


def test_the_sites_time_for_deciding_is_the_deadline() -> None:
    with override_settings(AGENT={"APPROVAL_TTL_SECONDS": 90}):
        assert asked().ttl == timedelta(seconds=90)


@pytest.mark.parametrize(
    ("actor", "approver", "may"),
    [
        (Actor("ana"), "requester", True),
        (Actor("bo"), "requester", False),
        (Actor("ana", (), "acme"), "requester", False),
        (Actor("bo", ("lead",)), "lead", True),
        (Actor("bo", ("lead",)), "role:lead", True),
        (Actor("bo", ("leader",)), "lead", False),
        (Actor("ana"), "lead", False),
        (Actor("bo", ("lead",), ""), "lead", False),
        (Actor("bo", ("requester",)), "requester", False),
        (Actor("bo", ("app.codename",)), "app.codename", False),
    ],
)
def test_the_approvers_form_decides_within_one_tenant(db: None, actor: Actor, approver: str, may: bool) -> None:
    assert POLICY.can_decide(actor, approver, ANA) is may


def test_a_permission_is_looked_up_in_todays_user(db: None) -> None:
    lead = User.objects.create_user("lead")
    actor = Actor(str(lead.pk))
    assert not POLICY.can_decide(actor, "auth.view_group", ANA)
    lead.user_permissions.add(Permission.objects.get(codename="view_group"))
    assert POLICY.can_decide(actor, "auth.view_group", ANA)
    User.objects.filter(pk=lead.pk).update(is_active=False)
    assert not POLICY.can_decide(actor, "auth.view_group", ANA)
