"""Who decides about actions, as it comes: what the tools declare. A host's own policy may begin from it."""

from __future__ import annotations

from datetime import timedelta

from pydantic import BaseModel

from agent.actors import Holder
from agent.conf import agent_settings
from agent.domain.actor import Actor, Owner
from agent.domain.approvals import ApprovalThread, Requirement, asked_of
from agent.spi import ActionTool

__all__ = ["ApprovalThread", "DefaultApprovalPolicy", "Requirement"]


class DefaultApprovalPolicy:
    """Asks for every action that wants approval, whom the tool names, within `AGENT["APPROVAL_TTL_SECONDS"]`."""

    def requirement_for(
        self,
        tool: ActionTool,
        input: BaseModel,  # noqa: A002 - the tool's own word
        actor: Actor,
        thread: ApprovalThread,
    ) -> Requirement:
        """Whether this call waits for a person; the same for every input."""
        if not tool.requires_approval:
            return Requirement(required=False)
        seconds = agent_settings().approval_ttl_seconds
        ttl = None if seconds is None else timedelta(seconds=seconds)
        return Requirement(required=True, approver=tool.approver, ttl=ttl, four_eyes=tool.four_eyes)

    def can_decide(self, actor: Actor, approver: str, scope: Owner) -> bool:
        """Whether the approver's form fits the actor, within one tenant."""
        if actor.tenant_ref != scope.tenant_ref:
            return False
        form, name = asked_of(approver)
        if form == "requester":
            return actor.same_as(scope)
        return Holder(actor).has(name) if form == "permission" else name in actor.roles
