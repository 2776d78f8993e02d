"""Write the tables of docs/reference/tables.md from the models: `.venv/bin/python -m docs.make_tables`."""
# ruff: noqa: INP001

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from pathlib import Path

import django
from django.apps import apps
from django.db import models

PAGE = Path(__file__).parent / "reference" / "tables.md"
MARK = "<!-- written by docs.make_tables -->\n"
TYPES = {
    "BigAutoField": "bigint, numbered",
    "BigIntegerField": "bigint",
    "BooleanField": "bool",
    "DateField": "day",
    "DateTimeField": "instant",
    "IntegerField": "int",
    "PositiveBigIntegerField": "count",
    "SmallIntegerField": "smallint",
}


def page() -> str:
    """The whole page: what is written by hand above the mark, and a section a table below it."""
    by_hand, mark, _ = PAGE.read_text().partition(MARK)
    return by_hand + mark + "".join(_section(model) for model in tables())


def tables() -> list[type[models.Model]]:
    """The tables of both apps, by name."""
    found = [model for app in ("agent", "governance") for model in apps.get_app_config(app).get_models()]
    return sorted((model for model in found if model._meta.managed), key=lambda model: model._meta.db_table)


def _section(model: type[models.Model]) -> str:
    return "\n".join([f"\n### `{model._meta.db_table}`", "", _promise(model), "", *_columns(model), "", *_keys(model)])


def _promise(model: type[models.Model]) -> str:
    return (inspect.getdoc(model) or "").partition("\n\n")[0].replace("\n", " ")


def _columns(model: type[models.Model]) -> Iterator[str]:
    yield "| column | type | null |"
    yield "|---|---|---|"
    for field in model._meta.concrete_fields:
        yield f"| `{field.column}` | {_type(field)} | {'yes' if field.null else ''} |"


def _type(field: models.Field[object, object]) -> str:
    target = field.related_model
    if isinstance(target, type):
        return f"→ `{target._meta.db_table}`"
    kind = field.get_internal_type()
    if kind == "CharField":
        return f"text, at most {field.max_length}"
    if kind == "TextField":
        return "JSON text" if "Json" in type(field).__name__ else "text"
    return TYPES[kind]


def _keys(model: type[models.Model]) -> Iterator[str]:
    unique = [one.fields for one in model._meta.constraints if isinstance(one, models.UniqueConstraint)]
    named = (("Unique", unique), ("Indexes", [index.fields for index in model._meta.indexes if index.fields]))
    told = [f"{word}: {'; '.join(map(_key, keys))}." for word, keys in named if keys]
    if told:
        yield " ".join(told)
        yield ""


def _key(fields: object) -> str:
    assert isinstance(fields, (list, tuple))
    return f"({', '.join(f'`{name}`' for name in fields)})"


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    django.setup()
    PAGE.write_text(page())
