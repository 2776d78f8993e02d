"""Actions that wait for a person outside the turn: decision and execution in one row."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from agent.domain.states import Decision
from agent.models.fields import HASH, NAME, REF, WORD, CleanTextField, ExactCharField


class ActionProposalQuerySet(models.QuerySet["ActionProposal"]):
    def scoped(self, scope_key: str) -> Self:
        return self.filter(scope_key=scope_key)

    def awaiting_decision(self) -> Self:
        return self.filter(decision=Decision.PENDING)


class ActionProposal(models.Model):
    """`proposal` is the record; the other columns are its index."""

    id = ExactCharField(max_length=HASH, primary_key=True)
    scope_key = ExactCharField(_("scope key"), max_length=HASH)
    create_fingerprint = CleanTextField(_("creation fingerprint"))
    proposal = CleanTextField(_("proposal"))
    version = models.IntegerField(_("version"))
    decision = ExactCharField(_("decision"), max_length=WORD)
    execution_status = ExactCharField(_("execution"), max_length=WORD, null=True)
    lease_expires_at_ms = models.BigIntegerField(_("lease expires at (ms)"), null=True)
    proposal_expires_at_ms = models.BigIntegerField(_("expires at (ms)"), null=True)
    discovery_index_version = models.SmallIntegerField(_("index version"))
    delivery_status = ExactCharField(_("delivery"), max_length=WORD, null=True)
    delivery_lease_expires_at_ms = models.BigIntegerField(_("delivery lease expires at (ms)"), null=True)
    outcome_id_key = ExactCharField(_("outcome key"), max_length=HASH, null=True)
    replacement_group_key = ExactCharField(_("replacement group key"), max_length=HASH, null=True)
    pending_group_key = ExactCharField(_("pending group key"), max_length=HASH, null=True)
    tenant_ref = ExactCharField(_("tenant"), max_length=REF, null=True)
    actor_ref = ExactCharField(_("actor"), max_length=REF)
    thread_ref = ExactCharField(_("thread"), max_length=REF)
    run_ref = ExactCharField(_("run"), max_length=REF, null=True)
    tool_name = ExactCharField(_("tool"), max_length=NAME)
    agent_name = ExactCharField(_("agent"), max_length=NAME, null=True)
    approver = ExactCharField(_("approver"), max_length=REF)
    created_at_ms = models.BigIntegerField(_("created at (ms)"))

    objects = ActionProposalQuerySet.as_manager()

    class Meta:
        db_table = "agent_action_proposal"
        verbose_name = _("action proposal")
        verbose_name_plural = _("action proposals")
        permissions = [("decide_actionproposal", "Can decide action proposal")]
        constraints = [
            models.UniqueConstraint(fields=["outcome_id_key"], name="agent_proposal_outcome_uq"),
            models.UniqueConstraint(fields=["pending_group_key"], name="agent_proposal_pending_uq"),
        ]
        indexes = [
            models.Index(
                fields=["discovery_index_version", "execution_status", "lease_expires_at_ms", "created_at_ms"],
                name="agent_proposal_work_ix",
            ),
            models.Index(
                fields=["discovery_index_version", "decision", "proposal_expires_at_ms", "created_at_ms"],
                name="agent_proposal_expiry_ix",
            ),
            models.Index(fields=["scope_key", "created_at_ms", "id"], name="agent_proposal_scope_ix"),
            models.Index(fields=["delivery_status", "delivery_lease_expires_at_ms"], name="agent_proposal_delivery_ix"),
            models.Index(fields=["decision", "created_at_ms"], name="agent_proposal_decision_ix"),
            models.Index(fields=["replacement_group_key"], name="agent_proposal_group_ix"),
        ]

    def __str__(self) -> str:
        return self.id
