"""Who may see what of the console: Django permissions (spec 08 §8)."""

from __future__ import annotations

from django.http import HttpRequest

SPEND = "governance.view_spend"
RELIABILITY = "governance.view_reliability"
TEXT = "governance.view_conversations"
EXPORT = "governance.export_governance"
REPRICE = "governance.reprice_usage"
INBOX = "agent.view_actionproposal"
DECIDE = "agent.decide_actionproposal"
PRICES = "agent.view_modelprice"
CHANGE_PRICES = "agent.change_modelprice"

# Fields that say what something cost: nothing for those who may not see spend.
COSTS = frozenset({"cost_nanos", "unpriced_requests", "usage", "total"})


def hidden_costs(request: HttpRequest) -> frozenset[str]:
    return frozenset() if request.user.has_perm(SPEND) else COSTS
