"""Capabilities `threads`, `thread_patch` and `default_agent_reader`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db.models import Case, OuterRef, Q, Subquery, When
from django.db.models.functions import Left

from agent.domain.actor import Actor, Owner
from agent.domain.commands import AppendMessage, ThreadPatch
from agent.domain.snapshots import ThreadDetail, ThreadScope, ThreadSummary
from agent.domain.states import MessageRole
from agent.errors import Conflict
from agent.models import Message, Run, Thread
from agent.models.inserts import Insert
from agent.models.prepared import Select, Slot, Update
from agent.models.thread import ThreadQuerySet
from agent.store.orm import approvals, message_rows, rows
from agent.store.orm.unit import OrmUnit

_PINS = ("default_agent", "model", "persona")

_insert = Insert(Thread)


def _live() -> ThreadQuerySet:
    return Thread.objects.alive().filter(pk=Slot("thread"))


def _held() -> ThreadQuerySet:
    return Thread.objects.filter(pk=Slot("thread"), active_run_id=Slot("run"))


_free = Q(active_run_id=None) | Q(active_run_id=Slot("run")) | Q(active_run_id=Slot("replacing"))
_claim = Update(lambda: _live().filter(_free), {"active_run_id": Slot("run")})
# A run that settles after the delete of its thread must let go too.
_titled = {"title": Slot("title"), "updated_at": Slot("now")}
_release = Update(_held, {"active_run_id": None})
_release_titled = Update(_held, {"active_run_id": None, **_titled})
_title = Update(_live, _titled)
_title_of_any = Update(lambda: Thread.objects.filter(pk=Slot("thread")), _titled)
_scope = Select(
    lambda: Thread.objects.filter(pk=Slot("thread")).values_list(
        "actor_ref", "tenant_ref", "deleted_at", "transient", *_PINS
    )
)
_pins = Select(lambda: _live().values_list(*_PINS))
_run_status = Case(
    When(role=MessageRole.ASSISTANT, then=Subquery(Run.objects.filter(pk=OuterRef("run_id")).values("status")[:1]))
)
_holder = Select(lambda: _live().values_list("active_run_id"))


class OrmThreads(OrmUnit):
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
        now = self.clock()
        values = {
            "id": self.new_id(),
            "external_id": external_id,
            "actor_ref": actor.ref,
            "tenant_ref": actor.tenant_ref,
            "transient": transient,
            "active_run_id": active_run_id,
            "default_agent": agent_name,
            "persona": persona,
            "last_seq": 0 if first_message is None else 1,
            "created_at": now,
            "updated_at": now,
        }
        draft = _insert.draft(self.db, values if title is None else {**values, "title": title})
        with self.joined():
            stored = _insert.new(self.db, draft)
            if stored is not None and first_message is not None:
                said = message_rows.draft(self, first_message, now, thread_id=stored["id"])
                return rows.thread_summary(stored, message_rows.insert(self, said, seq=1).content[: rows.PREVIEW])
        if stored is not None:
            return rows.thread_summary(stored)
        return self._of_external_id(actor, external_id)

    def _of_external_id(self, actor: Actor, external_id: str | None) -> ThreadSummary:
        known = Thread.objects.alive().filter(actor_ref=actor.ref, tenant_ref=actor.tenant_ref, external_id=external_id)
        summary = self._summary(known)
        if summary is None:
            raise Conflict("A deleted conversation, or one of another tenant, has this external id.")
        return summary

    def get_thread(self, thread_id: str) -> ThreadDetail | None:
        summary = self._summary(Thread.objects.alive().filter(pk=thread_id))
        if summary is None:
            return None
        messages = Message.objects.using(self.db).filter(thread_id=thread_id).in_order()
        told = messages.annotate(run_status=_run_status).values(*rows.MESSAGE, "run_status")
        read = [replace(rows.message(row), run_status=row["run_status"]) for row in told]
        return ThreadDetail(summary=summary, messages=approvals.with_cards(self.db, thread_id, read))

    def thread_by_external_id(self, actor_ref: str, external_id: str) -> str | None:
        known = Thread.objects.using(self.db).alive().filter(actor_ref=actor_ref, external_id=external_id)
        return known.values_list("pk", flat=True).first()

    def list_threads(self, actor: Actor, limit: int = 50) -> list[ThreadSummary]:
        if limit <= 0:
            return []
        mine = Thread.objects.using(self.db).listed().filter(actor_ref=actor.ref, tenant_ref=actor.tenant_ref)
        page = _with_preview(mine).order_by("-updated_at", "id")[:limit]
        return [rows.thread_summary(row, row["preview"]) for row in page]

    def soft_delete_thread(self, thread_id: str) -> None:
        Thread.objects.using(self.db).alive().filter(pk=thread_id).update(deleted_at=self.clock())

    def set_title(self, thread_id: str, title: str) -> None:
        _title(self.db, thread=thread_id, title=title, now=self.clock())

    def promote_thread(self, thread_id: str) -> None:
        Thread.objects.using(self.db).alive().filter(pk=thread_id, transient=True).update(transient=False)

    def update_thread(self, thread_id: str, patch: ThreadPatch) -> ThreadSummary | None:
        live = Thread.objects.using(self.db).alive().filter(pk=thread_id)
        if changes := rows.given(patch):
            live.update(**changes, updated_at=self.clock())
        return self._summary(live)

    def owner_of_thread(self, thread_id: str) -> Owner | None:
        scope = self.thread_scope(thread_id)
        return None if scope is None or scope.deleted else scope.owner

    def thread_scope(self, thread_id: str) -> ThreadScope | None:
        row = _scope.first(self.db, thread=thread_id)
        if row is None:
            return None
        ref, tenant_ref, deleted_at, transient, *pins = row
        return ThreadScope(
            owner=Owner(ref, tenant_ref),
            deleted=deleted_at is not None,
            transient=transient,
            **dict(zip(_PINS, pins, strict=True)),
        )

    def claim_active_run(self, thread_id: str, run_id: str, replacing: str | None = None) -> bool:
        return _claim(self.db, thread=thread_id, run=run_id, replacing=replacing) == 1

    def release_active_run(self, thread_id: str, run_id: str, *, title: str | None = None) -> bool:
        if title is None:
            return _release(self.db, thread=thread_id, run=run_id) == 1
        if _release_titled(self.db, thread=thread_id, run=run_id, title=title, now=self.clock()) == 1:
            return True
        _title_of_any(self.db, thread=thread_id, title=title, now=self.clock())
        return False

    def active_run_for_thread(self, thread_id: str) -> str | None:
        row = _holder.first(self.db, thread=thread_id)
        return None if row is None else row[0]

    def set_active_run(self, thread_id: str, run_id: str | None) -> None:
        Thread.objects.using(self.db).alive().filter(pk=thread_id).update(active_run_id=run_id)

    def default_agent_for_thread(self, thread_id: str) -> str | None:
        return self._pin(thread_id, 0)

    def model_for_thread(self, thread_id: str) -> str | None:
        return self._pin(thread_id, 1)

    def persona_for_thread(self, thread_id: str) -> str | None:
        return self._pin(thread_id, 2)

    def _pin(self, thread_id: str, place: int) -> str | None:
        row = _pins.first(self.db, thread=thread_id)
        return None if row is None else row[place]

    def _summary(self, threads: ThreadQuerySet) -> ThreadSummary | None:
        row = _with_preview(threads.using(self.db)).first()
        return None if row is None else rows.thread_summary(row, row["preview"])


def _with_preview(threads: ThreadQuerySet) -> Any:  # noqa: ANN401 - a queryset of dicts
    """The rows of threads with the beginning of each one's last message, in one query for all of them."""
    last = Message.objects.filter(thread=OuterRef("pk")).newest_first().annotate(start=Left("content", rows.PREVIEW))
    return threads.annotate(preview=Subquery(last.values("start")[:1])).values(*rows.THREAD, "preview")
