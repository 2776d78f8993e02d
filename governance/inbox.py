"""Who sits before the inbox, what they may decide there, and the one way from it into the flows (spec 07 §1, §12)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, cast

from django.http import HttpRequest

from agent.actors import actor_of, resolve
from agent.admin.scope import scope_of
from agent.approvals import DefaultApprovalPolicy
from agent.conf import agent_settings
from agent.domain.actor import Actor, Owner
from agent.domain.proposals import Answer, ProposalAnswer
from agent.errors import AlreadyDecided, ApprovalExpired, NotAllowed, NotAuthenticated, NotFound
from agent.flows import approvals, proposals
from agent.flows.approvals import may_decide
from agent.models.tenants import Tenants
from agent.spi import ActorResolver
from agent.store import get_store
from governance.permissions import DECIDE
from governance.queries.paging import Where
from governance.queries.selection import Selection, Value
from governance.queries.waiting import Item, Waiting, waiting

PERMISSION, FOUR_EYES, APPROVER = "permission", "four_eyes", "approver"
OF_A_PROPOSAL = "proposal-"
KNOWN = "_governance_desk"  # of a request


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What somebody decides: about which card, and on which channel."""

    subject: str  # the id of a call or of a proposal
    via: str
    digest: str | None = None
    reason: str | None = None
    remember: bool = False


def _judges_by_default() -> bool:
    """Whether the policy is ours: of who asked it wants to know the tenant, and whether they decide themselves."""
    return type(agent_settings().approval_policy).can_decide is DefaultApprovalPolicy.can_decide  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Somebody of the staff as a decider: a superuser answers to every approver, but not to four eyes."""

    actor: Actor
    permitted: bool
    superuser: bool
    scope: Tenants
    _default_policy: bool = field(default_factory=_judges_by_default, compare=False)
    _known: dict[tuple[str | None, str | bool, str | None], bool] = field(default_factory=dict, compare=False)
    _read: dict[object, Waiting] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, request: HttpRequest) -> Desk:
        """Who this request is, looked up once; raises `NotAuthenticated` for nobody."""
        known: Desk | None = getattr(request, KNOWN, None)
        if known is None:
            known = cls._looked_up(request)
            setattr(request, KNOWN, known)
        return known

    @classmethod
    def of_user(cls, user: Any) -> Desk | None:  # noqa: ANN401  any user model
        """A user away from any request, as the default resolver knows them: for what is sent to them."""
        actor = actor_of(user)
        if actor is None:
            return None
        return cls(actor=actor, permitted=user.has_perm(DECIDE), superuser=False, scope=[actor.tenant_ref])

    @classmethod
    def _looked_up(cls, request: HttpRequest) -> Desk:
        resolver = cast("ActorResolver", agent_settings().actor_resolver)
        actor = resolve(resolver, request) or actor_of(request.user)
        if actor is None:
            raise NotAuthenticated
        superuser = bool(request.user.is_superuser)
        scope = scope_of(request)
        return cls(
            actor=actor,
            permitted=request.user.has_perm(DECIDE),
            superuser=superuser,
            scope=scope if superuser else _within(scope, actor.tenant_ref),
        )

    def seen(self, selection: Selection) -> Selection:
        """The same within the tenants whose cards this person sees: their own; a superuser's are the console's."""
        return replace(selection, tenants=self.scope)

    @property
    def owner(self) -> Owner:
        return Owner(self.actor.ref, self.actor.tenant_ref)

    def waiting(self, selection: Selection, where: Where) -> Waiting:
        """What waits here, read once a request: the page and the number beside its name are of one look."""
        key = (*sorted(selection.filters.items()), None, *sorted(where.items()))
        if key not in self._read:
            self._read[key] = waiting(self.seen(selection), where, owner=self.owner, decidable=self.may)
        return self._read[key]

    def may(self, item: Item) -> bool:
        return not self.hindrance(item.approver, item.actor_ref, item.tenant_ref, four_eyes=item.four_eyes)

    def hindrance(self, approver: str | None, actor_ref: str, tenant_ref: str | None, *, four_eyes: bool) -> str:
        """Why this person may not decide what that actor asked for; nothing when they may."""
        if not self.permitted:
            return PERMISSION
        if four_eyes and self.actor.same_as(Owner(actor_ref, tenant_ref)):
            return FOUR_EYES
        return "" if self.superuser or self._answers_to(approver, actor_ref, tenant_ref) else APPROVER

    def _answers_to(self, approver: str | None, actor_ref: str, tenant_ref: str | None) -> bool:
        """Asked once a page for each approver; for each requester too where the site's own policy may look at them."""
        key = (approver, actor_ref == self.actor.ref if self._default_policy else actor_ref, tenant_ref)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = may_decide(self.actor, approver, Owner(actor_ref, tenant_ref))
        return known

    # ---- deciding -----------------------------------------------------------------------------------------------

    def approve(self, ruling: Ruling) -> str:
        """`applied` or `unchanged`. Raises as `agent.flows.approvals.approve` does, for proposals too."""
        self._admit(ruling.subject)
        words = {**self._words(ruling), "digest": ruling.digest, "remember": ruling.remember}
        if _is_proposal(ruling.subject):
            return _taken(proposals.approve(self.actor, ruling.subject, **words))
        return approvals.approve(self.actor, ruling.subject, **words)

    def reject(self, ruling: Ruling) -> str:
        """As `approve`, the other way."""
        self._admit(ruling.subject)
        words = {**self._words(ruling), "digest": ruling.digest, "reason": ruling.reason or None}
        if _is_proposal(ruling.subject):
            return _taken(proposals.reject(self.actor, ruling.subject, **words))
        return approvals.reject(self.actor, ruling.subject, **words)

    def settle(self, ruling: Ruling, end: str) -> str:
        """Say what became of an execution that was lost: `succeeded`, `failed`, or that it is to run `again`."""
        self._admit(ruling.subject)
        words = {**self._words(ruling), "reason": ruling.reason or ""}
        if end == "again":
            return _taken(proposals.run_again(self.actor, ruling.subject, **words))
        error = words["reason"] if end == "failed" else None
        return _taken(proposals.settle_unknown(self.actor, ruling.subject, error=error, **words))

    def _words(self, ruling: Ruling) -> dict[str, Any]:
        return {"via": ruling.via, "overrule": self.superuser}

    def _admit(self, subject: str) -> None:
        """Who may decide at all, and sees this one: of another tenant's cards nothing is told."""
        if not self.permitted:
            raise NotAllowed
        store = get_store()
        owner = (
            proposals.owner_of(proposals.found(store, subject))
            if _is_proposal(subject)
            else store.owner_of_tool_call(subject)
        )
        if owner is None or (self.scope is not None and owner.tenant_ref not in self.scope):
            raise NotFound


def _within(scope: Tenants, tenant: Value) -> Tenants:
    return [tenant] if scope is None or tenant in scope else []


def _is_proposal(subject: str) -> bool:
    return subject.startswith(OF_A_PROPOSAL)


def _taken(answer: ProposalAnswer) -> str:
    match answer.status:
        case Answer.APPLIED | Answer.UNCHANGED:
            return answer.status.value
        case Answer.EXPIRED:
            raise ApprovalExpired
        case Answer.NOT_FOUND:
            raise NotFound
        case _:
            raise AlreadyDecided
