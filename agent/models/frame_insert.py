"""The one statement that numbers frames while it inserts them."""
# ruff: noqa: S608 - every name in its text is a table or a column of ours

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from agent.domain import wakeups
from agent.models.run import Run
from agent.models.stream import StreamFrame

MOST = 400  # rows of one statement; SQLite allows 500 terms in a compound select

Texts = tuple[str | None, str | None]  # frame, error

_FIELDS = {field.name: field for field in StreamFrame._meta.fields}
_RUN_ID, _FRAME, _ERROR = _FIELDS["run_id"], _FIELDS["frame"], _FIELDS["error"]


def append(
    using: str, run_id: str, frames: Sequence[Texts], *, attempt: int | None, now_ms: int, by: str | None = None
) -> int | None:
    """Insert frames behind the last of their run and answer the last number; None once a newer attempt has the run.

    `by`: another run speaks in this one's stream, and the attempt is its own.
    A number that another writer took meanwhile raises `IntegrityError`.
    """
    connection = connections[using]
    run = _RUN_ID.get_db_prep_save(run_id, connection)
    params: list[Any] = [run, now_ms, run, run]
    for place, (frame, error) in enumerate(frames, start=1):
        params += [
            place,
            _FRAME.get_db_prep_save(frame, connection),
            None if error is None else _ERROR.get_db_prep_save(error, connection),
        ]
    if attempt is not None:
        params += [run if by is None else _RUN_ID.get_db_prep_save(by, connection), attempt]
    if connection.vendor == "postgresql":
        params += [wakeups.CHANNEL, wakeups.this_process(), run]
    alone = not connection.in_atomic_block
    sql = _statement(connection.vendor, len(frames), fenced=attempt is not None, alone=alone)
    return _sent(connection, sql, params, len(frames))


@lru_cache(maxsize=256)
def _statement(vendor: str, rows: int, *, fenced: bool, alone: bool) -> str:
    frame, run = StreamFrame._meta.db_table, Run._meta.db_table  # names that no database needs quoted
    last = (
        f"SELECT COALESCE((SELECT MAX(seq) FROM {frame} WHERE run_id = %s),"
        f" (SELECT frame_base FROM {run} WHERE id = %s), 0) AS seq"
    )
    new = " UNION ALL ".join(["SELECT %s AS place, %s AS frame, %s AS error", *["SELECT %s, %s, %s"] * (rows - 1)])
    newer = f"EXISTS (SELECT 1 FROM {run} WHERE id = %s AND attempt > %s)"
    guards = [f"NOT {newer}"] if fenced else []
    if vendor == "postgresql" and alone:
        # The thread is the record, the stream is not: alone, it need not wait for the disk. True, and local to this
        # statement's own transaction.
        guards.append("set_config('synchronous_commit', 'off', true) = 'off'")
    insert = (
        f"INSERT INTO {frame} (run_id, seq, frame, error, created_at_ms)"
        f" SELECT %s, top.seq + new.place, new.frame, new.error, %s FROM ({last}) top CROSS JOIN ({new}) new"
        f"{' WHERE ' + ' AND '.join(guards) if guards else ''}"
        f"{'' if vendor == 'mysql' else ' RETURNING seq'}"
    )
    if vendor != "postgresql":
        return insert
    # The wake-up rides along: no round trip and no commit of its own, and it is heard when the rows can be read.
    wake = "pg_notify(%s::text, MAX(seq)::text || ' ' || %s::text || ' ' || %s::text)"
    return f"WITH added AS ({insert}) SELECT MAX(seq), {wake} FROM added HAVING MAX(seq) IS NOT NULL"


def _sent(connection: BaseDatabaseWrapper, sql: str, params: list[Any], count: int) -> int | None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        if connection.vendor != "mysql":
            return max((row[0] for row in cursor.fetchall()), default=None)
        if cursor.rowcount == 0:
            return None
        # The key of the first row; keys of other writers may lie between those of its followers, numbers may not.
        table = connection.ops.quote_name(StreamFrame._meta.db_table)
        cursor.execute(f"SELECT seq FROM {table} WHERE id = %s", [cursor.lastrowid])
        first: int = cursor.fetchone()[0]
        return first + count - 1
