"""Statements that are built once and run many times.

A turn runs a few dozen statements. Building one through the ORM costs more than running it, so what is on that path is
written as a queryset with slots, compiled at its first use on a database, and from then on only filled in and sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.expressions import Col, Expression
from django.db.models.sql import UpdateQuery
from django.db.models.sql.compiler import SQLCompiler

from agent.domain.text import REPLACEMENT, is_exact

Row = list[Any]
Converters = Sequence[tuple[int, Sequence[Callable[..., object]], Expression]]

NO_ROW: Final = REPLACEMENT * 300  # no column that is compared exactly can hold it
_TIME = models.DateTimeField()


class Slot(Expression):
    """A place in a prepared statement that each run fills with the value of that name."""

    def __init__(self, name: str, output_field: models.Field[Any, Any] | None = None) -> None:
        super().__init__(output_field=output_field)
        self.name = name
        self.column: models.Field[Any, Any] | None = None

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, Any]:
        return "%s", [self]

    def filled(self, values: Mapping[str, object], connection: BaseDatabaseWrapper) -> object:
        """The value as the driver takes it: checked and cleaned for a column, matching nothing if it is not exact."""
        value = values[self.name]
        if self.column is not None:
            return self.column.get_db_prep_save(value, connection)
        if isinstance(value, str):
            return str.__str__(value) if is_exact(value) else NO_ROW
        if isinstance(value, datetime):
            return connection.ops.adapt_datetimefield_value(value)
        return value


def now_slot() -> Slot:
    """The instant of a move, where an expression needs to know its type."""
    return Slot("now", _TIME)


@dataclass(frozen=True, slots=True)
class Compiled:
    """The text of a statement on one database, and what its result has to go through."""

    sql: str
    params: tuple[object, ...]
    converters: Converters = ()

    def bind(self, values: Mapping[str, object], connection: BaseDatabaseWrapper) -> list[Any]:
        return [param.filled(values, connection) if type(param) is Slot else param for param in self.params]

    def read(self, rows: Iterable[Sequence[object]], connection: BaseDatabaseWrapper) -> list[Row]:
        read = [list(row) for row in rows]
        for position, chain, expression in self.converters:
            for row in read:
                for convert in chain:
                    row[position] = convert(row[position], expression, connection)
        return read


class Prepared:
    """What a statement has of its own on each database it was run on."""

    def __init__(self) -> None:
        self._compiled: dict[tuple[str, str], Compiled] = {}

    def compiled(self, using: str, connection: BaseDatabaseWrapper) -> Compiled:
        key = (using, connection.vendor)
        found = self._compiled.get(key)
        if found is None:
            found = self._compiled[key] = self.compile(using, connection)
        return found

    def compile(self, using: str, connection: BaseDatabaseWrapper) -> Compiled:
        raise NotImplementedError


class Select(Prepared):
    """A read: `values_list` with slots; answers rows in the order of its columns."""

    def __init__(self, build: Callable[[], models.QuerySet[Any, Any]]) -> None:
        super().__init__()
        self._build = build

    def __call__(self, using: str, **values: object) -> list[Row]:
        connection = connections[using]
        compiled = self.compiled(using, connection)
        with connection.cursor() as cursor:
            cursor.execute(compiled.sql, compiled.bind(values, connection))
            rows = cursor.fetchall()
        return compiled.read(rows, connection)

    def first(self, using: str, **values: object) -> Row | None:
        rows = self(using, **values)
        return rows[0] if rows else None

    def compile(self, using: str, connection: BaseDatabaseWrapper) -> Compiled:
        compiler = self._build().query.get_compiler(using)
        sql, params = compiler.as_sql()
        chains = compiler.get_converters([selected[0] for selected in compiler.select])
        return Compiled(sql, tuple(params), [(at, chain, column) for at, (chain, column) in chains.items()])


class Update(Prepared):
    """A guarded move: the rows it may touch, and what it sets; answers how many rows it moved."""

    def __init__(
        self,
        rows: Callable[[], models.QuerySet[Any, Any]],
        changes: Mapping[str, object],
        *,
        returning: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self._rows, self._changes, self._returning = rows, changes, returning

    def __call__(self, using: str, **values: object) -> int:
        connection = connections[using]
        compiled = self.compiled(using, connection)
        with connection.cursor() as cursor:
            cursor.execute(compiled.sql, compiled.bind(values, connection))
            return int(cursor.rowcount)

    def returned(self, using: str, **values: object) -> Row | None:
        """Move one row and answer its columns after the move; only where `returns_from_update`."""
        connection = connections[using]
        compiled = self.compiled(using, connection)
        with connection.cursor() as cursor:
            cursor.execute(compiled.sql, compiled.bind(values, connection))
            rows = cursor.fetchall()
        read = compiled.read(rows, connection)
        return read[0] if read else None

    def last_insert_id(self, using: str, **values: object) -> int | None:
        """What the move gave to LAST_INSERT_ID (MySQL, MariaDB); None when it moved nothing."""
        connection = connections[using]
        compiled = self.compiled(using, connection)
        with connection.cursor() as cursor:
            cursor.execute(compiled.sql, compiled.bind(values, connection))
            return cursor.lastrowid if cursor.rowcount else None

    def compile(self, using: str, connection: BaseDatabaseWrapper) -> Compiled:
        query: Any = self._rows().query.chain(UpdateQuery)  # the stubs lose the class asked for
        meta = query.get_meta()
        for name, value in self._changes.items():
            if isinstance(value, Slot):
                value.column = meta.get_field(name)
        query.add_update_values(self._changes)
        compiler = query.get_compiler(using)
        sql, params = compiler.as_sql()
        if not self._returning:
            return Compiled(sql, tuple(params))
        columns = [Col(meta.db_table, meta.get_field(name)) for name in self._returning]
        names = ", ".join(connection.ops.quote_name(meta.get_field(name).column) for name in self._returning)
        chains = [(at, chain, column) for at, (chain, column) in compiler.get_converters(columns).items()]
        return Compiled(f"{sql} RETURNING {names}", tuple(params), chains)


def returns_from_update(connection: BaseDatabaseWrapper) -> bool:
    """Whether UPDATE ... RETURNING is there: PostgreSQL, and SQLite from 3.35; MariaDB has it for inserts only."""
    return connection.vendor != "mysql" and connection.features.can_return_columns_from_insert
