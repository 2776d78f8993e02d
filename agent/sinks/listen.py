"""Wake-ups by PostgreSQL's LISTEN: one connection a process, the sink's own, in autocommit. It needs psycopg 3."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from django.db import connections
from psycopg import AsyncConnection

from agent.domain import wakeups
from agent.sinks.pump import Pump

ALIVE_SECONDS: Final = 15.0  # a connection that was cut without a word is found out after that
CONNECT_SECONDS: Final = 10
NOT_OURS: Final = frozenset({"cursor_factory", "context"})  # Django's own, for its sync connections


class PostgresEar:
    """Hears what the frame inserts of other processes notify; of its own process it need not hear."""

    def __init__(self, alias: str) -> None:
        self._alias = alias

    async def attend(self, run_ids: Collection[str]) -> None:
        return  # one channel for all runs

    async def listen(self, pump: Pump) -> None:
        given: dict[str, Any] = connections[self._alias].get_connection_params()
        parameters = {"connect_timeout": CONNECT_SECONDS, **given}
        parameters = {name: value for name, value in parameters.items() if name not in NOT_OURS}
        async with await AsyncConnection.connect(**parameters, autocommit=True) as connection:
            await connection.execute(f"LISTEN {wakeups.CHANNEL}")
            pump.hears()
            while True:
                async for notice in connection.notifies(timeout=ALIVE_SECONDS):
                    wake = wakeups.read(notice.payload)
                    if wake is not None and wake.origin != wakeups.this_process():
                        pump.heard(wake.run_id, wake.seq)
                await connection.execute("SELECT 1")
