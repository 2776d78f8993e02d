"""Companion `personal_agent_connections` on the site's database (spec 12, experimental)."""

from __future__ import annotations

from dataclasses import fields

from django.db import IntegrityError

from agent.domain.personal import Connection, ConnectionStatus, NewConnection
from agent.errors import Conflict
from agent.models import PersonalConnection
from agent.models.erasure import erase
from agent.models.inserts import Insert, Values
from agent.models.personal import PersonalConnectionQuerySet
from agent.store.orm.unit import OrmUnit

_COLUMNS = tuple(each.name for each in fields(Connection))
_GIVEN = tuple(each.name for each in fields(NewConnection))

_insert = Insert(PersonalConnection)


class OrmPersonalConnections(OrmUnit):
    """A `PersonalAgentConnectionStore`."""

    def connect(self, new: NewConnection) -> Connection:
        now = self.clock()
        values: Values = {name: getattr(new, name) for name in _GIVEN}
        values |= {"id": self.new_id(), "created_at": now, "updated_at": now}
        draft = _insert.draft(self.db, values)
        while (row := _insert.new(self.db, draft) or self._again(draft.stored)) is None:
            continue  # the connection that was in the way is gone
        return Connection(**{name: row[name] for name in _COLUMNS})

    def _again(self, stored: Values) -> Values | None:
        """The connection of these two, with what is agreed now; None where it is gone."""
        theirs = self._connections().of(stored["client_id"], stored["user_id"])
        try:
            with self.atomic():
                if theirs.update(**{name: stored[name] for name in (*_GIVEN, "updated_at")}):
                    row: Values = theirs.values(*_COLUMNS).get()
                    return row
        except IntegrityError as error:
            raise Conflict("This token is another connection's.") from error
        if self._connections().filter(token_hash=stored["token_hash"]).exclude(token_hash=None).exists():
            raise Conflict("This token is another connection's.")
        return None

    def get(self, client_id: str, user_id: str) -> Connection | None:
        return _first(self._connections().of(client_id, user_id))

    def by_token_hash(self, token_hash: str) -> Connection | None:
        return _first(self._connections().authenticating(token_hash, self.clock()))

    def touch(self, connection_id: str) -> bool:
        return self._connections().filter(pk=connection_id).update(last_used_at=self.clock()) == 1

    def set_status(self, connection_id: str, status: str) -> bool:
        return self._connections().filter(pk=connection_id).move(status, self.clock())

    def revoke(self, client_id: str, user_id: str) -> bool:
        return self._connections().of(client_id, user_id).move(ConnectionStatus.REVOKED, self.clock())

    def list_for_user(self, user_id: str) -> list[Connection]:
        rows = self._connections().filter(user_id=user_id).order_by("id").values(*_COLUMNS)
        return [Connection(**row) for row in rows]

    def erase_user(self, user_id: str) -> int:
        return erase(self._connections().filter(user_id=user_id))

    def _connections(self) -> PersonalConnectionQuerySet:
        return PersonalConnection.objects.using(self.db)


def _first(rows: PersonalConnectionQuerySet) -> Connection | None:
    row = rows.values(*_COLUMNS).first()
    return None if row is None else Connection(**row)
