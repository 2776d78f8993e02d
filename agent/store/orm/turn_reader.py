"""Capability `turn_reader`: a page of a thread's newest messages by index, at a cost that does not grow with it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from django.db.models import Exists, OuterRef

from agent.domain.snapshots import ThreadPage, TurnMessage
from agent.domain.states import MessageRole
from agent.models import Message, Thread
from agent.models.message import MessageQuerySet
from agent.models.prepared import Row, Select, Slot
from agent.store.orm import rows
from agent.store.orm.unit import OrmUnit

_OF_THREAD = ("thread__title", "thread__default_agent")


def _shown() -> MessageQuerySet:
    return Message.objects.shown_to_models().filter(thread_id=Slot("thread"))


@lru_cache(maxsize=128)
def _page(limit: int | None, *, below: bool) -> Select:
    """The page of a limit; one row more than asked tells whether older ones exist."""

    def build() -> MessageQuerySet:
        shown = _shown().filter(thread__deleted_at=None).newest_first()
        if below:
            shown = shown.filter(seq__lt=Slot("before"))
        return shown if limit is None else shown[: limit + 1]

    return Select(lambda: build().values_list(*rows.TURN_MESSAGE, *_OF_THREAD))


_answered = Select(lambda: _shown().answers().order_by().values_list("seq")[:1])
_of_thread = Select(
    lambda: (
        Thread.objects.alive()
        .filter(pk=Slot("thread"))
        .annotate(
            answered=Exists(Message.objects.shown_to_models().answers().filter(thread=OuterRef("pk"))),
            more=Exists(Message.objects.shown_to_models().filter(thread=OuterRef("pk"), seq__lt=Slot("before"))),
        )
        .values_list("title", "default_agent", "answered", "more")
    )
)
_ABOVE_ALL = 2**31 - 1  # what no message's number reaches


class OrmTurnReader(OrmUnit):
    def load_thread_for_turn(
        self, thread_id: str, *, message_limit: int | None = None, before_seq: int | None = None
    ) -> ThreadPage | None:
        if message_limit is not None and message_limit <= 0:
            return self._without_messages(thread_id, before_seq)
        select = _page(message_limit, below=before_seq is not None)
        found = select(self.db, thread=thread_id, before=before_seq)
        if not found:
            return self._without_messages(thread_id, before_seq)
        page = found[:message_limit]
        messages = tuple(TurnMessage(**dict(zip(rows.TURN_MESSAGE, row, strict=False))) for row in reversed(page))
        has_more = len(found) > len(page)
        whole = not has_more and before_seq is None
        return ThreadPage(
            title=page[0][-2],
            default_agent=page[0][-1],
            has_assistant_message=_answers(messages) or (not whole and self._answered(thread_id)),
            has_more=has_more,
            messages=messages,
        )

    def _answered(self, thread_id: str) -> bool:
        return bool(_answered(self.db, thread=thread_id))

    def _without_messages(self, thread_id: str, before_seq: int | None) -> ThreadPage | None:
        before = _ABOVE_ALL if before_seq is None else before_seq
        row: Row | None = _of_thread.first(self.db, thread=thread_id, before=before)
        if row is None:
            return None
        title, default_agent, answered, more = row
        return ThreadPage(
            title=title, default_agent=default_agent, has_assistant_message=answered, has_more=more, messages=()
        )


def _answers(messages: Sequence[TurnMessage]) -> bool:
    return any(message.role == MessageRole.ASSISTANT for message in messages)
