"""Capability `queue`."""

from __future__ import annotations

from typing import Any

from django.db.models import Exists, Max, Min, OuterRef, Q

from agent.domain.actor import Owner
from agent.domain.queue import NewQueuedMessage, QueuedPatch, QueuePause, ThreadHold
from agent.domain.queue import QueuedMessage as QueuedMessageValue
from agent.errors import Conflict, NotFound
from agent.models import QueuedMessage, Run, Thread
from agent.models.erasure import erase
from agent.models.inserts import Insert
from agent.models.prepared import Select, Slot, Update
from agent.models.queue import QueuedMessageQuerySet
from agent.models.thread import ThreadQuerySet
from agent.store.orm import rows
from agent.store.orm.unit import OrmUnit
from agent.store.queue import End

_insert = Insert(QueuedMessage)


def _waiting() -> Exists:
    return Exists(QueuedMessage.objects.filter(thread_id=OuterRef("pk")))


def _in_turn() -> ThreadQuerySet:
    """The thread if it may be claimed by whoever sends now: idle, and nobody before him may start."""
    mine = Thread.objects.alive().filter(pk=Slot("thread"))
    idle = Q(active_run_id=None) | Q(active_run_id=Slot("run"))
    return mine.filter(idle).filter(Q(queue_pause__isnull=False) | ~_waiting())


def _unwaited() -> ThreadQuerySet:
    return Thread.objects.filter(pk=Slot("thread"), active_run_id=Slot("run")).filter(~_waiting())


_HELD = ("actor_ref", "tenant_ref", "active_run_id", "queue_pause", "deleted_at")
_lock = Select(lambda: Thread.objects.filter(pk=Slot("thread")).select_for_update().values_list(*_HELD))
_claim = Update(_in_turn, {"active_run_id": Slot("run")})
_release = Update(_unwaited, {"active_run_id": None})
_release_titled = Update(_unwaited, {"active_run_id": None, "title": Slot("title"), "updated_at": Slot("now")})


class OrmQueue(OrmUnit):
    def enqueue_message(self, message: NewQueuedMessage, at: End = "tail") -> QueuedMessageValue:
        now = self.clock()
        values: dict[str, Any] = {name: getattr(message, name, None) for name in rows.QUEUED}
        actor = {"actor": message.actor.to_json(), "actor_ref": message.actor.ref}
        given = {"id": message.id or self.new_id(), "position": 0, "created_at": now, "updated_at": now}
        draft = _insert.draft(self.db, values | actor | given)
        with self.joined():
            if self.lock_thread(message.thread_id) is None:
                raise NotFound("There is no such conversation.")
            _insert.number(draft, "position", self._free_position(message.thread_id, at))
            stored = _insert.new(self.db, draft)
        if stored is None:
            raise Conflict("A message of this id waits already.")
        return rows.queued(stored)

    def _free_position(self, thread_id: str, at: End) -> int:
        queue = QueuedMessage.objects.using(self.db).filter(thread_id=thread_id)
        ends = queue.aggregate(head=Min("position"), tail=Max("position"))
        if ends["head"] is None:
            return 0
        return int(ends["head"] - 1 if at == "head" else ends["tail"] + 1)

    def list_queue(self, thread_id: str) -> list[QueuedMessageValue]:
        queue = self._waiting_of_live_threads().filter(thread_id=thread_id)
        return [rows.queued(row) for row in queue.in_order().values(*rows.QUEUED)]

    def get_queued_message(self, message_id: str) -> QueuedMessageValue | None:
        row = self._waiting_of_live_threads().filter(pk=message_id).values(*rows.QUEUED).first()
        return None if row is None else rows.queued(row)

    def update_queued_message(self, message_id: str, patch: QueuedPatch) -> QueuedMessageValue | None:
        changes = rows.given(patch)
        with self.joined():
            if self._locked_thread_of(message_id) is None:
                return None
            if changes:
                message = QueuedMessage.objects.using(self.db).filter(pk=message_id)
                message.update(**changes, updated_at=self.clock())
            return self.get_queued_message(message_id)

    def move_queued_message(self, message_id: str, index: int) -> bool:
        with self.joined():
            thread_id = self._locked_thread_of(message_id)
            if thread_id is None:
                return False
            queue = QueuedMessage.objects.using(self.db).filter(thread_id=thread_id)
            order = list(queue.in_order().values_list("pk", flat=True))
            if message_id not in order:
                return False
            order.remove(message_id)
            order.insert(max(index, 0), message_id)
            numbered = [QueuedMessage(pk=key, position=place) for place, key in enumerate(order)]
            queue.bulk_update(numbered, ["position"], batch_size=100)
            return True

    def remove_queued_message(self, message_id: str) -> bool:
        with self.joined():
            if self._locked_thread_of(message_id) is None:
                return False
            return erase(QueuedMessage.objects.using(self.db).filter(pk=message_id)) == 1

    def clear_queue(self, thread_id: str) -> int:
        with self.joined():
            if self.lock_thread(thread_id) is None:
                return 0
            return erase(QueuedMessage.objects.using(self.db).filter(thread_id=thread_id))

    def queue_pause(self, thread_id: str) -> QueuePause | None:
        return _pause(self._live(thread_id).values_list("queue_pause", flat=True).first())

    def set_queue_pause(self, thread_id: str, pause: QueuePause | None) -> None:
        self._live(thread_id).update(queue_pause=None if pause is None else pause.to_json())

    def lock_thread(self, thread_id: str) -> ThreadHold | None:
        with self.joined():
            row = _lock.first(self.db, thread=thread_id)
        if row is None or row[4] is not None:
            return None
        return ThreadHold(owner=Owner(row[0], row[1]), run_id=row[2], pause=_pause(row[3]))

    def claim_in_turn(self, thread_id: str, run_id: str) -> bool:
        return _claim(self.db, thread=thread_id, run=run_id) == 1

    def release_unless_waiting(self, thread_id: str, run_id: str, *, title: str | None = None) -> bool:
        if title is None:
            return _release(self.db, thread=thread_id, run=run_id) == 1
        return _release_titled(self.db, thread=thread_id, run=run_id, title=title, now=self.clock()) == 1

    def idle_queues(self, limit: int) -> list[str]:
        if limit <= 0:
            return []
        held = Exists(Run.objects.open().filter(pk=OuterRef("active_run_id")))
        unpaused = Thread.objects.using(self.db).alive().filter(queue_pause=None)
        ready = unpaused.filter(_waiting()).filter(~held)
        return list(ready.order_by("pk").values_list("pk", flat=True)[:limit])

    def _live(self, thread_id: str) -> ThreadQuerySet:
        return Thread.objects.using(self.db).alive().filter(pk=thread_id)

    def _waiting_of_live_threads(self) -> QueuedMessageQuerySet:
        return QueuedMessage.objects.using(self.db).filter(thread__deleted_at=None)

    def _locked_thread_of(self, message_id: str) -> str | None:
        """The thread of a waiting message, locked; whether the message still waits is asked after that."""
        waiting = QueuedMessage.objects.using(self.db).filter(pk=message_id)
        thread_id = waiting.values_list("thread_id", flat=True).first()
        return thread_id if thread_id is not None and self.lock_thread(thread_id) is not None else None


def _pause(value: dict[str, Any] | None) -> QueuePause | None:
    return None if value is None else QueuePause.from_json(value)
