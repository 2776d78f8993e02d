"""The store as a tool may use it: reads, and nothing that changes anything."""

from __future__ import annotations

from datetime import datetime

from agent.domain.actor import Actor, Owner
from agent.domain.ledger import UsageTotals
from agent.domain.snapshots import Message, ThreadDetail, ThreadScope, ThreadSummary, ToolCall
from agent.registry import StoreReads


class ReadOnly:
    """Passes reads on; the store behind it is out of a tool's reach."""

    __slots__ = ("__store",)

    def __init__(self, store: StoreReads) -> None:
        self.__store = store

    def get_thread(self, thread_id: str) -> ThreadDetail | None:
        return self.__store.get_thread(thread_id)

    def list_threads(self, actor: Actor, limit: int = 50) -> list[ThreadSummary]:
        return self.__store.list_threads(actor, limit)

    def thread_scope(self, thread_id: str) -> ThreadScope | None:
        return self.__store.thread_scope(thread_id)

    def owner_of_thread(self, thread_id: str) -> Owner | None:
        return self.__store.owner_of_thread(thread_id)

    def messages_of_run(self, thread_id: str, run_id: str) -> list[Message] | None:
        return self.__store.messages_of_run(thread_id, run_id)

    def get_tool_call(self, call_id: str) -> ToolCall | None:
        return self.__store.get_tool_call(call_id)

    def usage_between(self, actor_ref: str, start: datetime, end: datetime) -> UsageTotals:
        return self.__store.usage_between(actor_ref, start, end)
