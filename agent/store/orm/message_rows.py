"""Rows of messages, as threads and messages both insert them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import IntegrityError

from agent.domain.commands import AppendMessage
from agent.domain.snapshots import Message as MessageValue
from agent.domain.states import MessageRole
from agent.errors import Conflict
from agent.models import Message
from agent.models.inserts import Draft, Insert
from agent.store.orm import rows
from agent.store.orm.unit import OrmUnit

_insert = Insert(Message)


def draft(unit: OrmUnit, message: AppendMessage, now: datetime, **given: object) -> Draft:
    """A message's row, checked; `seq` is filled in by `numbered` unless it is given."""
    values: dict[str, Any] = {name: getattr(message, name, None) for name in rows.MESSAGE}
    values |= {"id": message.id or unit.new_id(), "seq": 0, "created_at": now, **given}
    if message.role == MessageRole.ASSISTANT and message.content.isspace():
        values["content"] = ""
    return _insert.draft(unit.db, values)


def insert(unit: OrmUnit, drafted: Draft, *, seq: int) -> MessageValue:
    """The inserted message under its number; `Conflict` when its id is taken."""
    _insert.number(drafted, "seq", seq)
    try:
        return rows.message(_insert.one(unit.db, drafted))
    except IntegrityError:
        raise Conflict("A message of this id is there already.") from None
