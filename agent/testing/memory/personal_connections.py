"""Companion `personal_agent_connections` in memory (spec 12, experimental)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from agent.domain.ids import new_id as default_id
from agent.domain.personal import Connection, ConnectionStatus, NewConnection, before
from agent.errors import Conflict
from agent.testing.memory.unit import Table, UnitOfWork, unit
from agent.testing.memory.values import HASH, REF, WORD, copied, exact


class InMemoryPersonalConnections(UnitOfWork):
    """A `PersonalAgentConnectionStore` of one process."""

    def __init__(
        self,
        *,
        clock: Callable[[], datetime] | None = None,
        new_id: Callable[[], str] | None = None,
        beside: UnitOfWork | None = None,
    ) -> None:
        super().__init__(beside)
        self.clock = clock or (lambda: datetime.now(UTC))
        self.new_id = new_id or default_id
        self.connections: Table[str, Connection] = Table(self._log)
        self.connection_of = self.connections.index(lambda row: (row.client_id, row.user_id))
        self.connection_with = self.connections.index(lambda row: row.token_hash)

    @unit
    def connect(self, new: NewConnection) -> Connection:
        now = self.clock()
        row = Connection(
            id=self.new_id(),
            client_id=exact("client_id", new.client_id, REF),
            user_id=exact("user_id", new.user_id, REF),
            account_ref=exact("account_ref", new.account_ref, REF),
            status=exact("status", new.status, WORD),
            scopes=copied(new.scopes),
            token_hash=exact("token_hash", new.token_hash, HASH),
            token_expires_at=new.token_expires_at,
            metadata=copied(new.metadata),
            created_at=now,
            updated_at=now,
            last_used_at=None,
        )
        known = self.connection_of.first((row.client_id, row.user_id))
        if known is not None:
            old = self.connections[known]
            row = replace(row, id=old.id, created_at=old.created_at, last_used_at=old.last_used_at)
        if row.token_hash is not None and self.connection_with.first(row.token_hash) not in (None, row.id):
            raise Conflict("This token is another connection's.")
        return _copy(self.connections.put(row.id, row))

    @unit
    def get(self, client_id: str, user_id: str) -> Connection | None:
        key = self.connection_of.first((client_id, user_id))
        return None if key is None else _copy(self.connections[key])

    @unit
    def by_token_hash(self, token_hash: str) -> Connection | None:
        key = self.connection_with.first(token_hash)
        row = None if key is None else self.connections[key]
        if row is None or row.status != ConnectionStatus.ACTIVE:
            return None
        lapsed = row.token_expires_at is not None and row.token_expires_at <= self.clock()
        return None if lapsed else _copy(row)

    @unit
    def touch(self, connection_id: str) -> bool:
        row = self.connections.get(connection_id)
        if row is not None:
            self.connections.put(row.id, replace(row, last_used_at=self.clock()))
        return row is not None

    @unit
    def set_status(self, connection_id: str, status: str) -> bool:
        row = self.connections.get(connection_id)
        if row is None or row.status not in before(status):
            return False
        moved = replace(row, status=status, updated_at=self.clock())
        if status == ConnectionStatus.REVOKED:
            moved = replace(moved, token_hash=None, token_expires_at=None)
        self.connections.put(row.id, moved)
        return True

    @unit
    def revoke(self, client_id: str, user_id: str) -> bool:
        key = self.connection_of.first((client_id, user_id))
        return key is not None and self.set_status(key, ConnectionStatus.REVOKED)

    @unit
    def list_for_user(self, user_id: str) -> list[Connection]:
        theirs = sorted((row for row in self.connections if row.user_id == user_id), key=lambda row: row.id)
        return [_copy(row) for row in theirs]

    @unit
    def erase_user(self, user_id: str) -> int:
        theirs = [row.id for row in self.connections if row.user_id == user_id]
        for key in theirs:
            self.connections.drop(key)
        return len(theirs)


def _copy(row: Connection) -> Connection:
    return replace(row, scopes=copied(row.scopes), metadata=copied(row.metadata))
