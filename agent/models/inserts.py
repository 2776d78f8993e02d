"""Inserts whose SQL is built once, and whose rows need no read to be known."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper

from agent.domain.text import is_exact
from agent.models.fields import JsonTextField
from agent.models.prepared import NO_ROW

Values = dict[str, Any]

_DUPLICATE_KEY = 1062  # MySQL and MariaDB
_ROWS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of an insert: how its value is prepared, and how the prepared value will be read back."""

    name: str  # as the row names it: `thread_id`
    field: models.Field[Any, Any]
    default: object
    required: bool
    null: bool
    is_json: bool
    is_text: bool
    is_number: bool
    most: int

    def prepare(self, values: Mapping[str, object], connection: BaseDatabaseWrapper) -> tuple[object, object]:
        """The driver's value, and the same as a later read gives it."""
        value = values[self.name] if self.required else values.get(self.name, self.default)
        if value is None and self.null:
            return None, None
        if self._is_plain(value):
            return value, value
        prepared = self.field.get_db_prep_save(value, connection)
        if self.is_json:
            return prepared, None if prepared is None else json.loads(prepared)
        return prepared, prepared if self.is_text else value

    def _is_plain(self, value: object) -> bool:
        """Whether every field of this kind stores the value as it is: nine of ten do, and asking the field is slow."""
        kind = type(value)
        if kind is str:
            return self.is_text and len(value) <= self.most and value.isascii() and "\x00" not in value  # type: ignore[arg-type,attr-defined,operator]
        return self.is_number and (kind is int or kind is bool)


def _column(field: models.Field[Any, Any]) -> _Column:
    kind = field.target_field if isinstance(field, models.ForeignKey) else field
    has_default = field.has_default() and not field.primary_key
    return _Column(
        name=field.attname,
        field=field,
        default=field.get_default() if has_default else None,
        required=not field.null and not has_default,
        null=field.null,
        is_json=isinstance(kind, JsonTextField),
        is_text=isinstance(kind, models.CharField | models.TextField) and not isinstance(kind, JsonTextField),
        is_number=isinstance(kind, models.IntegerField | models.BooleanField),
        most=getattr(kind, "max_length", None) or sys.maxsize,
    )


@dataclass(frozen=True, slots=True)
class Draft:
    """A row that was checked and is not sent yet; `stored` is how a later read will give it."""

    params: list[Any]
    stored: Values


class Insert:
    """New rows of one table; a row comes back as a later read will give it, without that read.

    What a value may not be is raised by `draft`, before anything is written.
    """

    def __init__(self, model: type[models.Model]) -> None:
        self._model = model
        fields = [field for field in model._meta.concrete_fields if not isinstance(field, models.AutoField)]
        self._columns = tuple(_column(field) for field in fields)
        self._places = {column.name: place for place, column in enumerate(self._columns)}
        self._has_serial = isinstance(model._meta.pk, models.AutoField)
        self._texts: dict[tuple[str, int], str] = {}

    def draft(self, using: str, values: Mapping[str, object]) -> Draft:
        connection = connections[using]
        params: list[Any] = []
        stored: Values = {}
        for column in self._columns:
            param, stored[column.name] = column.prepare(values, connection)
            params.append(param)
        return Draft(params, stored)

    def number(self, draft: Draft, name: str, number: int) -> None:
        """Fill in a number that was given after the draft."""
        draft.params[self._places[name]] = draft.stored[name] = number

    def one(self, using: str, draft: Draft) -> Values:
        """Insert a row; a taken unique key raises."""
        connection = connections[using]
        self._send(connection, self._sql(connection), draft.params, draft.stored)
        return draft.stored

    def new(self, using: str, draft: Draft, *, under: tuple[type[models.Model], str] | None = None) -> Values | None:
        """Insert a row in one statement, without a savepoint; None when a unique key was taken.

        `under` is a row that has to be there: its model and key; None is answered too where it is not.
        """
        connection = connections[using]
        sql, params = self._sql(connection), draft.params
        if under is not None:
            sql, params = self._under(under, connection), [*params, under[1] if is_exact(under[1]) else NO_ROW]
        if connection.vendor != "mysql":
            sent = self._send(connection, f"{sql} ON CONFLICT DO NOTHING", params, draft.stored)
            return draft.stored if sent else None
        try:  # there a refused insert leaves the transaction as it was, and IGNORE would hide other errors
            return draft.stored if self._send(connection, sql, params, draft.stored) else None
        except IntegrityError as error:
            if error.args and error.args[0] == _DUPLICATE_KEY:
                return None
            raise

    def many(self, using: str, drafts: Sequence[Draft]) -> None:
        """Insert rows together, in one statement up to a hundred."""
        connection = connections[using]
        most = connection.features.max_query_params
        size = _ROWS_AT_ONCE if most is None else max(1, min(_ROWS_AT_ONCE, most // len(self._columns)))
        for start in range(0, len(drafts), size):
            chunk = drafts[start : start + size]
            with connection.cursor() as cursor:
                params = [param for draft in chunk for param in draft.params]
                cursor.execute(self._sql(connection, len(chunk)), params)

    def _send(self, connection: BaseDatabaseWrapper, sql: str, params: list[Any], stored: Values) -> bool:
        with connection.cursor() as cursor:
            if not self._has_serial:
                cursor.execute(sql, params)
                return int(cursor.rowcount) == 1
            if connection.vendor != "postgresql":
                cursor.execute(sql, params)
                stored["id"] = cursor.lastrowid
                return int(cursor.rowcount) == 1
            cursor.execute(f'{sql} RETURNING "id"', params)
            row: tuple[int] | None = cursor.fetchone()
            stored["id"] = None if row is None else row[0]
            return row is not None

    def _into(self, connection: BaseDatabaseWrapper) -> str:
        quote = connection.ops.quote_name
        names = ", ".join(quote(str(column.field.column)) for column in self._columns)
        return f"INSERT INTO {quote(self._model._meta.db_table)} ({names})"

    def _sql(self, connection: BaseDatabaseWrapper, rows: int = 1) -> str:
        text = self._texts.get((connection.vendor, rows))
        if text is None:
            row = f"({', '.join(['%s'] * len(self._columns))})"
            text = f"{self._into(connection)} VALUES {', '.join([row] * rows)}"
            self._texts[connection.vendor, rows] = text
        return text

    def _under(self, under: tuple[type[models.Model], str], connection: BaseDatabaseWrapper) -> str:
        quote = connection.ops.quote_name
        parent = under[0]._meta
        places = ", ".join(["%s"] * len(self._columns))
        source = f"FROM {quote(parent.db_table)} WHERE {quote(str(parent.pk.column))} = %s"
        return f"{self._into(connection)} SELECT {places} {source}"
