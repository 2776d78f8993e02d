"""Columns that behave the same on SQLite, PostgreSQL, MySQL and MariaDB."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import models
from django.db.models import lookups

from agent.domain.canonical import compact_json
from agent.domain.text import REPLACEMENT, clean_text, is_exact
from agent.errors import Invalid

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

    _ST = TypeVar("_ST", contravariant=True)
    _GT = TypeVar("_GT", covariant=True)

    class CharColumn(models.CharField[_ST, _GT]): ...

    class TextColumn(models.TextField[_ST, _GT]): ...

else:
    _ST = _GT = None

    class _Typed:
        """Django's fields take type parameters in their stubs only."""

        def __class_getitem__(cls, _parameters: object) -> type:
            return cls

    class CharColumn(_Typed, models.CharField): ...

    class TextColumn(_Typed, models.TextField): ...


ID = 64
HASH = 64
REF = 255
NAME = 128
WORD = 32  # a status, a role, a kind: a word of ours

Raw = Any  # what a field is given and gives: a value, an expression, None


class BoundedCharField(CharColumn[_ST, _GT]):
    """Refuses what is longer than its column: SQLite would keep it, PostgreSQL cut it in bulk inserts."""

    def get_db_prep_save(self, value: Raw, connection: BaseDatabaseWrapper) -> Raw:
        if isinstance(value, str) and self.max_length is not None and len(value) > self.max_length:
            raise Invalid.field(self.name, f"at most {self.max_length} characters")
        return super().get_db_prep_save(value, connection)


class CleanCharField(BoundedCharField[_ST, _GT]):
    """Short text for people: NUL and lone surrogates are replaced by U+FFFD."""

    def get_prep_value(self, value: Raw) -> Raw:
        return _cleaned(super().get_prep_value(value))


class ExactComparison(CharColumn[_ST, _GT]):
    """Case and trailing blanks count on every database.

    The collation is asked of the connection and is no part of the migration, which is the same for all of them.
    """

    def db_parameters(self, connection: BaseDatabaseWrapper) -> Raw:
        return {**super().db_parameters(connection), "collation": self._exact_collation(connection)}

    def _exact_collation(self, connection: BaseDatabaseWrapper) -> str | None:
        if connection.vendor != "mysql":
            return self.db_collation
        return "utf8mb4_nopad_bin" if connection.mysql_is_mariadb else "utf8mb4_0900_bin"  # type: ignore[attr-defined]

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        """The same type by its full name: at `varchar` Django adds an index for LIKE, which nobody reads."""
        if connection.vendor == "postgresql":
            return f"character varying({self.max_length})"
        return super().db_type(connection)


class ExactCharField(ExactComparison[_ST, _GT], BoundedCharField[_ST, _GT]):
    """An id, a reference or a name: NUL and lone surrogates are refused, and a lookup with one matches no row."""

    def get_db_prep_save(self, value: Raw, connection: BaseDatabaseWrapper) -> Raw:
        if isinstance(value, str) and not is_exact(value):
            raise Invalid.field(self.name, "without NUL and lone surrogates")
        return super().get_db_prep_save(value, connection)

    def get_prep_value(self, value: Raw) -> Raw:
        value = super().get_prep_value(value)
        if isinstance(value, str):
            return str.__str__(value) if is_exact(value) else self._unmatched
        return value

    @property
    def _unmatched(self) -> str:
        """What no row can hold: it is longer than the column."""
        return REPLACEMENT * ((self.max_length or 0) + 1)


class CleanExactCharField(ExactComparison[_ST, _GT], CleanCharField[_ST, _GT]):
    """A word that a host may choose (a channel, an error code): cleaned like text, compared exactly."""


class CleanTextField(TextColumn[_ST, _GT]):
    """Text of any length: NUL and lone surrogates are replaced by U+FFFD."""

    def get_prep_value(self, value: Raw) -> Raw:
        return _cleaned(super().get_prep_value(value))


class JsonTextField(TextColumn[_ST, _GT]):
    """JSON in a text column: ASCII-escaped, key order kept, NUL and lone surrogates survive.

    None is SQL NULL; in a column that may not be NULL it is JSON's null.
    """

    _pyi_private_set_type: Any
    _pyi_private_get_type: Any

    def from_db_value(self, value: str | None, expression: object, connection: BaseDatabaseWrapper) -> Raw:
        return None if value is None else json.loads(value)

    def to_python(self, value: Raw) -> Raw:
        return value

    def get_prep_value(self, value: Raw) -> Raw:
        if (value is None and self.null) or hasattr(value, "as_sql"):
            return value
        try:
            return compact_json(value)
        except Invalid as error:
            raise Invalid.field(self.name, error.message) from error

    def value_to_string(self, obj: models.Model) -> Raw:
        return self.value_from_object(obj)


class JsonListField(JsonTextField[_ST, _GT]):
    """A list in a JSON column; an empty one is absent, which is NULL."""

    def get_prep_value(self, value: Raw) -> Raw:
        return super().get_prep_value(None if value in ([], ()) else value)


def _cleaned(value: Raw) -> Raw:
    return clean_text(value) if isinstance(value, str) else value


class _Storable:
    """Django hands the text of a pattern to the driver as it is; ours passes through its column like any value."""

    def get_prep_lookup(self) -> Raw:
        given = super().get_prep_lookup()  # type: ignore[misc]
        return self.lhs.output_field.get_prep_value(given) if isinstance(given, str) else given  # type: ignore[attr-defined]


for _pattern in (
    lookups.IExact,
    lookups.Contains,
    lookups.IContains,
    lookups.StartsWith,
    lookups.IStartsWith,
    lookups.EndsWith,
    lookups.IEndsWith,
    lookups.Regex,
    lookups.IRegex,
):
    _lookup = type(_pattern.__name__, (_Storable, _pattern), {})
    BoundedCharField.register_lookup(_lookup)
    CleanTextField.register_lookup(_lookup)
