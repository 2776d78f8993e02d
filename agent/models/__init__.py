"""The tables of spec 01 with their querysets: one row, one guarded update."""

from __future__ import annotations

from agent.models.attachment import StagedAttachment
from agent.models.confirm import ConfirmToken
from agent.models.idempotency import IdempotencyKey
from agent.models.ledger import ModelPrice, UsageEntry
from agent.models.memory import MemoryFact
from agent.models.message import Message
from agent.models.personal import PersonalConnection, PersonalConversation, PersonalEvent, PersonalMessage
from agent.models.proposal import ActionProposal
from agent.models.queue import QueuedMessage
from agent.models.run import Run, RunStep
from agent.models.stream import StreamFrame
from agent.models.thread import Thread, ThreadSummary
from agent.models.tool_call import ToolCall

__all__ = [
    "ActionProposal",
    "ConfirmToken",
    "IdempotencyKey",
    "MemoryFact",
    "Message",
    "ModelPrice",
    "PersonalConnection",
    "PersonalConversation",
    "PersonalEvent",
    "PersonalMessage",
    "QueuedMessage",
    "Run",
    "RunStep",
    "StagedAttachment",
    "StreamFrame",
    "Thread",
    "ThreadSummary",
    "ToolCall",
    "UsageEntry",
]
