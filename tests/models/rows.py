"""Rows to build tests on: every column that may not be absent has a value."""

from __future__ import annotations

from datetime import UTC, datetime

from agent.domain.states import MessageRole, RunStatus, RunTrigger, TokensSource, ToolCallStatus, ToolType, UsagePurpose
from agent.models import Message, ModelPrice, Run, Thread, ToolCall, UsageEntry

NOW = datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC)


def thread(**fields: object) -> Thread:
    return Thread.objects.create(**{"actor_ref": "ana", "created_at": NOW, "updated_at": NOW, **fields})


def message(of: Thread, seq: int = 1, **fields: object) -> Message:
    given = {"role": MessageRole.ASSISTANT, "content": "", "created_at": NOW, **fields}
    return Message.objects.create(thread=of, seq=seq, **given)


def tool_call(of: Message, provider_call_id: str = "call_1", **fields: object) -> ToolCall:
    given = {
        "actor_ref": "ana",
        "tool_name": "lookup",
        "tool_type": ToolType.READ,
        "input": {},
        "status": ToolCallStatus.RUNNING,
        "created_at": NOW,
        **fields,
    }
    return ToolCall.objects.create(message=of, thread_id=of.thread_id, provider_call_id=provider_call_id, **given)


def run(**fields: object) -> Run:
    given = {
        "thread_id": "t",
        "actor_ref": "ana",
        "actor": {},
        "status": RunStatus.QUEUED,
        "trigger": RunTrigger.SEND,
        "input": {},
        "stream_run_id": "r",
        "created_at": NOW,
        **fields,
    }
    return Run.objects.create(**given)


def price(**fields: object) -> ModelPrice:
    given = {
        "model_id": "m",
        "input_per_million_nanos": 1,
        "output_per_million_nanos": 2,
        "effective_from": NOW,
        "source": "admin",
        "created_at": NOW,
        **fields,
    }
    return ModelPrice.objects.create(**given)


def usage(**fields: object) -> UsageEntry:
    given = {
        "thread_id": "t",
        "actor_ref": "ana",
        "model_id": "m",
        "purpose": UsagePurpose.CHAT,
        "input_tokens": 1,
        "output_tokens": 2,
        "tokens_source": TokensSource.REPORTED,
        "created_at": NOW,
        **fields,
    }
    return UsageEntry.objects.create(**given)
