"""The capability `threads` in dictionaries."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from agent.domain.actor import Actor, Owner
from agent.domain.commands import AppendMessage
from agent.domain.forks import call_copy, copied_part, in_call_order, message_copy
from agent.domain.snapshots import Message, ThreadScope, ThreadSummary, ToolCall
from agent.domain.text import clean_text
from agent.errors import Conflict, Invalid, NotFound
from tests.notebook.book import Book, ThreadRow, alone, ident, name


class Threads(Book):
    def live(self, thread_id: str) -> ThreadRow | None:
        """The thread, unless it is unknown or deleted."""
        row = self.threads.get(thread_id)
        return None if row is None or row.deleted_at is not None else row

    def said_in(self, thread_id: str) -> list[Message]:
        """The messages of a thread, oldest first."""
        found = [message for message in self.messages.values() if message.thread_id == thread_id]
        return sorted(found, key=lambda message: message.seq)

    def change(self, thread_id: str, **columns: Any) -> None:
        """Change a live thread; nothing for another."""
        row = self.live(thread_id)
        if row is not None:
            self.threads[thread_id] = replace(row, **columns)

    def summary(self, row: ThreadRow) -> ThreadSummary:
        said = self.said_in(row.id)
        return ThreadSummary(
            id=row.id,
            actor_ref=row.actor_ref,
            tenant_ref=row.tenant_ref,
            title=row.title,
            transient=row.transient,
            default_agent=row.default_agent,
            model=None,
            persona=row.persona,
            external_id=row.external_id,
            active_run_id=row.active_run_id,
            last_message_preview=said[-1].content[:120] if said else "",
            created_at=row.created_at,
            updated_at=row.updated_at,
        )

    def create_thread(
        self,
        *,
        actor: Actor,
        title: str | None = None,
        transient: bool = False,
        agent_name: str | None = None,
        persona: str | None = None,
        external_id: str | None = None,
        active_run_id: str | None = None,
        first_message: AppendMessage | None = None,
    ) -> ThreadSummary:
        with self.atomic():
            now = self.clock()
            row = ThreadRow(
                id=self.new_id(),
                external_id=name(external_id),
                actor_ref=actor.ref,
                tenant_ref=actor.tenant_ref,
                title=_title("New chat" if title is None else title),
                transient=transient,
                active_run_id=ident(active_run_id),
                default_agent=name(agent_name, 128),
                persona=name(persona, 128),
                last_seq=0,
                created_at=now,
                updated_at=now,
            )
            known = self._named(actor.ref, external_id)
            if known is not None:
                return self._known(known, actor)
            self.threads[row.id] = row
            if first_message is not None:
                self.append_message(replace(first_message, thread_id=row.id))
            return self.summary(self.threads[row.id])

    def append_message(self, message: AppendMessage) -> Message:
        """Of the capability `messages`."""
        raise NotImplementedError

    def _known(self, row: ThreadRow, actor: Actor) -> ThreadSummary:
        if row.deleted_at is not None or row.tenant_ref != actor.tenant_ref:
            raise Conflict("This external id is taken.")
        return self.summary(row)

    def _named(self, actor_ref: str, external_id: str | None) -> ThreadRow | None:
        if external_id is None:
            return None
        same = (row for row in self.threads.values() if (row.actor_ref, row.external_id) == (actor_ref, external_id))
        return next(same, None)

    @alone
    def thread_by_external_id(self, actor_ref: str, external_id: str) -> str | None:
        row = self._named(actor_ref, external_id)
        return None if row is None or row.deleted_at is not None else row.id

    @alone
    def list_threads(self, actor: Actor, limit: int = 50) -> list[ThreadSummary]:
        shown = [
            row
            for row in self.threads.values()
            if actor.same_as(Owner(row.actor_ref, row.tenant_ref)) and row.deleted_at is None and not row.transient
        ]
        shown.sort(key=lambda row: row.id)
        shown.sort(key=lambda row: row.updated_at, reverse=True)
        return [self.summary(row) for row in shown[: max(limit, 0)]]

    @alone
    def soft_delete_thread(self, thread_id: str) -> None:
        self.change(thread_id, deleted_at=self.clock())

    def purge_thread(self, thread_id: str) -> bool:
        with self.atomic():
            for message in self.said_in(thread_id):
                self.forget(message)
            return self.threads.pop(thread_id, None) is not None

    def forget(self, message: Message) -> None:
        """Remove a message with its calls."""
        del self.messages[message.id]
        for call in self._calls_of(message):
            del self.calls[call.id]

    @alone
    def deleted_threads(self, before: datetime, limit: int = 100) -> list[str]:
        found = sorted(
            (row.deleted_at, row.id)
            for row in self.threads.values()
            if row.deleted_at is not None and row.deleted_at < before and row.active_run_id is None
        )
        return [thread_id for _, thread_id in found[: max(limit, 0)]]

    def fork_thread(self, thread_id: str, from_message_id: str) -> ThreadSummary:
        with self.atomic():
            source = self.live(thread_id)
            if source is None:
                raise NotFound("There is no such thread.")
            said, now = copied_part(self.said_in(thread_id), from_message_id), self.clock()
            fork = replace(
                source,
                id=self.new_id(),
                external_id=None,
                transient=False,
                active_run_id=None,
                last_seq=len(said),
                created_at=now,
                updated_at=now,
            )
            self.threads[fork.id] = fork
            self._copy(fork, list(said))
            return self.summary(fork)

    def _copy(self, fork: ThreadRow, said: list[Message]) -> None:
        called = {message.id: in_call_order(self._calls_of(message)) for message in said}
        message_ids = {message.id: ident(self.new_id()) for message in said}
        call_ids = {call.id: ident(self.new_id()) for calls in called.values() for call in calls}
        for seq, message in enumerate(said, start=1):
            new = message_ids[message.id]
            self.messages[new] = message_copy(message, id=new, thread_id=fork.id, seq=seq, call_ids=call_ids)
            for call in called[message.id]:
                self.calls[call_ids[call.id]] = call_copy(
                    call, thread_id=fork.id, message_ids=message_ids, call_ids=call_ids, now=fork.created_at
                )

    def _calls_of(self, message: Message) -> list[ToolCall]:
        return [call for call in self.calls.values() if call.message_id == message.id]

    @alone
    def set_title(self, thread_id: str, title: str) -> None:
        self.change(thread_id, title=_title(title), updated_at=self.clock())

    @alone
    def promote_thread(self, thread_id: str) -> None:
        self.change(thread_id, transient=False)

    @alone
    def owner_of_thread(self, thread_id: str) -> Owner | None:
        row = self.live(thread_id)
        return None if row is None else Owner(row.actor_ref, row.tenant_ref)

    @alone
    def thread_scope(self, thread_id: str) -> ThreadScope | None:
        row = self.threads.get(thread_id)
        if row is None:
            return None
        return ThreadScope(
            owner=Owner(row.actor_ref, row.tenant_ref),
            deleted=row.deleted_at is not None,
            transient=row.transient,
            default_agent=row.default_agent,
            model=None,
            persona=row.persona,
        )

    @alone
    def claim_active_run(self, thread_id: str, run_id: str, replacing: str | None = None) -> bool:
        row = self.live(thread_id)
        if row is None or row.active_run_id not in {None, run_id, replacing}:
            return False
        self.change(thread_id, active_run_id=ident(run_id))
        return True

    @alone
    def release_active_run(self, thread_id: str, run_id: str, *, title: str | None = None) -> bool:
        row = self.threads.get(thread_id)
        if row is None:
            return False
        titled = row if title is None else replace(row, title=_title(title), updated_at=self.clock())
        held = row.active_run_id == run_id
        self.threads[thread_id] = replace(titled, active_run_id=None) if held else titled
        return held

    @alone
    def active_run_for_thread(self, thread_id: str) -> str | None:
        row = self.live(thread_id)
        return None if row is None else row.active_run_id

    @alone
    def set_active_run(self, thread_id: str, run_id: str | None) -> None:
        self.change(thread_id, active_run_id=ident(run_id))


def _title(title: str) -> str:
    if len(title) > 255:
        raise Invalid("A title has at most 255 characters.")
    return clean_text(title)
