"""Rows of several tables, inserted together: parents before what points to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper

from agent.models import Message, ModelPrice, Run, Thread, ToolCall, UsageEntry
from agent.models.fields import JsonTextField
from governance.rollups.marks import database, written

ORDER: Sequence[type[models.Model]] = (Thread, Message, Run, ToolCall, UsageEntry)
AT_ONCE = 20_000

Values = Mapping[str, Any]  # by column; what is left out has its default
Convert = Callable[[Any], Any]


class Writer:
    """Collects rows and writes them when there are enough."""

    def __init__(self) -> None:
        self._using = database()
        self._lines = {model: _Lines(model, connections[self._using]) for model in ORDER}
        self._rows: dict[type[models.Model], list[Values]] = {model: [] for model in ORDER}
        self._written = {ModelPrice._meta.db_table: 0} | {model._meta.db_table: 0 for model in ORDER}

    def add_missing(self, prices: Sequence[ModelPrice]) -> None:
        """Prices that are not there yet: a second sample finds those of the first."""
        ModelPrice.objects.using(self._using).bulk_create(prices, ignore_conflicts=True)
        self._written[ModelPrice._meta.db_table] += len(prices)

    def add(self, model: type[models.Model], row: Values) -> None:
        self._rows[model].append(row)

    def flush_when_full(self) -> None:
        """Between conversations only: rows of one that is not whole would miss what they point to."""
        if sum(map(len, self._rows.values())) >= AT_ONCE * 3:
            self.flush()

    def flush(self) -> None:
        with written():
            for model in ORDER:
                rows = self._rows[model]
                self._insert(self._lines[model], rows)
                self._written[model._meta.db_table] += len(rows)
                rows.clear()

    def close(self) -> dict[str, int]:
        return self._written

    def _insert(self, lines: _Lines, rows: Sequence[Values]) -> None:
        connection = connections[self._using]
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                with (
                    connection.wrap_database_errors,
                    cursor.copy(f"COPY {lines.target} FROM STDIN") as target,
                ):
                    for line in lines.of(rows):
                        target.write_row(line)
            elif rows:
                cursor.executemany(f"INSERT INTO {lines.target} VALUES ({lines.places})", [*lines.of(rows)])  # noqa: S608


class _Lines:
    """Rows as the driver wants them, without a model instance a row: what the columns ask for is found out once."""

    def __init__(self, model: type[models.Model], connection: BaseDatabaseWrapper) -> None:
        quote = connection.ops.quote_name
        fields = [field for field in model._meta.concrete_fields if not isinstance(field, models.AutoField)]
        self.target = f"{quote(model._meta.db_table)} ({', '.join(quote(str(field.column)) for field in fields)})"
        self.places = ", ".join(["%s"] * len(fields))
        self._defaults = {field.attname: None if callable(field.default) else field.get_default() for field in fields}
        self._picked = itemgetter(*(field.attname for field in fields))
        self._converted = [
            (place, convert)
            for place, field in enumerate(fields)
            if (convert := _convert_for(field, connection)) is not None
        ]

    def of(self, rows: Sequence[Values]) -> Iterator[list[Any]]:
        for row in rows:
            line = list(self._picked({**self._defaults, **row}))
            for place, convert in self._converted:
                line[place] = convert(line[place])
            yield line


def _convert_for(field: models.Field[Any, Any], connection: BaseDatabaseWrapper) -> Convert | None:
    """What turns a value of this column into the driver's; None: nothing has to."""
    if isinstance(field, JsonTextField):
        return field.get_prep_value
    if isinstance(field, models.DateTimeField) and connection.vendor != "postgresql":
        return connection.ops.adapt_datetimefield_value
    return None
