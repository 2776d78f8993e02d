"""A settled proposal without its texts: who asked for what kind of action, who decided, and how it ended."""

from __future__ import annotations

from dataclasses import replace

from agent.domain.commands import UNSET
from agent.domain.proposals import Proposal


def without_texts(proposal: Proposal) -> Proposal:
    """The same record with nothing of what people, models and tools said."""
    asked = replace(
        proposal.asked,
        input={},
        execution_context={},
        confirmation=None,
        preparation_input=UNSET,
        replacement_key=None,
    )
    audit, execution, outcome = proposal.audit, proposal.execution, proposal.outcome
    if execution is not None:
        settled_by = tuple(replace(one, reason=None) for one in execution.settled_by)
        execution = replace(execution, result=UNSET, error=None, settled_by=settled_by)
    return replace(
        proposal,
        asked=asked,
        audit=audit and replace(audit, reason=None),
        execution=execution,
        outcome=outcome and replace(outcome, result=UNSET, error=None, reason=None, text=None, ui=None),
    )
