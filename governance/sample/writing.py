"""Rows of several tables, inserted together: parents before what points to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connections, models

from agent.models import Message, ModelPrice, Run, Thread, ToolCall, UsageEntry
from governance.rollups.marks import database, written

ORDER: Sequence[type[models.Model]] = (Thread, Message, Run, ToolCall, UsageEntry)
AT_ONCE = 20_000


class Writer:
    """Collects rows and writes them when there are enough."""

    def __init__(self) -> None:
        self._using = database()
        self._rows: dict[type[models.Model], list[models.Model]] = {model: [] for model in ORDER}
        self._written = {ModelPrice._meta.db_table: 0} | {model._meta.db_table: 0 for model in ORDER}

    def add_missing(self, prices: Sequence[ModelPrice]) -> None:
        """Prices that are not there yet: a second sample finds those of the first."""
        ModelPrice.objects.using(self._using).bulk_create(prices, ignore_conflicts=True)
        self._written[ModelPrice._meta.db_table] += len(prices)

    def add(self, *rows: models.Model) -> None:
        for row in rows:
            self._rows[type(row)].append(row)

    def flush_when_full(self) -> None:
        """Between conversations only: rows of one that is not whole would miss what they point to."""
        if sum(map(len, self._rows.values())) >= AT_ONCE * 3:
            self.flush()

    def flush(self) -> None:
        with written():
            for model in ORDER:
                rows = self._rows[model]
                self._insert(model, rows)
                self._written[model._meta.db_table] += len(rows)
                rows.clear()

    def close(self) -> dict[str, int]:
        return self._written

    def _insert(self, model: type[models.Model], rows: list[models.Model]) -> None:
        connection = connections[self._using]
        fields = [field for field in model._meta.concrete_fields if not isinstance(field, models.AutoField)]
        quote = connection.ops.quote_name
        columns = ", ".join(quote(str(field.column)) for field in fields)
        places = ", ".join(["%s"] * len(fields))
        values = ([self._prepared(field, row) for field in fields] for row in rows)
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                copy = f"COPY {quote(model._meta.db_table)} ({columns}) FROM STDIN"
                with cursor.copy(copy) as target:
                    for each in values:
                        target.write_row(each)
            elif rows:
                into = f"INSERT INTO {quote(model._meta.db_table)} ({columns}) VALUES ({places})"  # noqa: S608
                cursor.executemany(into, [*values])

    def _prepared(self, field: models.Field[Any, Any], row: models.Model) -> Any:  # noqa: ANN401  (as the driver wants it)
        connection = connections[self._using]
        value = field.get_db_prep_save(field.pre_save(row, add=True), connection)
        return value.obj if hasattr(value, "obj") else value
