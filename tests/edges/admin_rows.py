"""A full row of any of our tables: every column has a value, and the text ones carry a marker."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from django.db import models

from agent.models.fields import JsonTextField

MARKER = "tell-nobody-42"
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)

# What people and models said, by table: written here once more, so that the admin cannot forget a column silently.
TEXT: dict[str, set[str]] = {
    "agent_thread": {"title", "queue_pause"},
    "agent_message": {
        *("content", "tool_calls", "tool_results", "attachments", "follow_ups"),
        *("reasoning", "ui", "provider_state", "feedback"),
    },
    "agent_tool_call": {"input", "output", "decision_reason", "answers", "confirmation", "error"},
    "agent_thread_summary": {"text"},
    "agent_queued_message": {"content", "attachments", "page_context", "ui_capabilities", "host_context"},
    "agent_idempotency_key": {"key", "outcome"},
    "agent_run": {"input", "error_message"},
    "agent_run_step": {"payload"},
    "agent_stream_frame": {"frame", "error"},
    "agent_action_proposal": {"create_fingerprint", "proposal"},
    "agent_memory": {"key", "text"},
    "agent_staged_attachment": {"name", "file"},
    "agent_pap_conversation": {"context"},
    "agent_pap_event": {"event", "event_key"},
    "agent_pap_message": {"message_id", "response"},
    "agent_pap_connection": {"metadata"},
}
# Text and JSON that whoever views the table may read: figures, ids, words of the site's own staff.
OPEN: dict[str, set[str]] = {
    "agent_message": {"usage", "action_proposal_outcome"},
    "agent_tool_call": {"decided_via"},
    "agent_queued_message": {"actor"},
    "agent_run": {"actor", "error_code"},
    "agent_model_price": {"tiers", "note", "source"},
    "agent_pap_conversation": {"grant_info"},
    "agent_pap_connection": {"scopes"},
    "agent_staged_attachment": {"content_type"},
    "governance_run_rollup": {"error_code", "duration_histogram", "active_histogram"},
    "governance_rollup_day": {"histograms"},
    "governance_tool_rollup": {"execution_histogram"},
    "governance_reprice_audit": {"reason"},
}


def full_row(model: type[models.Model], number: int = 1, **given: Any) -> models.Model:
    """An unsaved row, and the saved rows that it points to."""
    row = model(**given)
    for column in model._meta.concrete_fields:
        if column.attname not in given and not isinstance(column, models.AutoField):
            setattr(row, column.attname, _value(column, number))
    return row


def _value(column: models.Field[Any, Any], number: int) -> object:
    text = column.attname in TEXT.get(column.model._meta.db_table, ())
    if isinstance(column, models.ForeignKey):
        return _target(column).pk
    if isinstance(column, JsonTextField):
        return [{"said": MARKER}] if text else [{"n": number}]
    if isinstance(column, models.TextField):
        return MARKER if text else "open"
    if isinstance(column, models.CharField):
        return f"{MARKER if text else column.name}-{number}"[: column.max_length]
    if isinstance(column, models.DateTimeField):
        return NOW
    if isinstance(column, models.BooleanField):
        return number % 2 == 1
    return date(2026, 11, 30) if isinstance(column, models.DateField) else number


def _target(column: models.ForeignKey[Any, Any]) -> models.Model:
    target: type[models.Model] = column.related_model
    found = target._default_manager.first()
    if found is None:
        found = full_row(target, 9_000)
        found.save(force_insert=True)
    return found
