"""The database has the tables of the spec, no more and no less: asked of the database itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection, models, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.models import ProtectedError

from agent.models import Message, Run, RunStep, Thread, ThreadSummary, ToolCall, UsageEntry
from tests.models import rows
from tests.models.spec_tables import FREE_TEXT, Table, tables

TABLES = tables()
TEXT_LENGTHS = {"id": 64, "hash": 64, "ref": 255, "name": 128, "word": 32}
# What Django's introspection of the three databases calls the columns of a type.
INTROSPECTED = {
    "text": {"TextField"},
    "json": {"TextField"},
    "bool": {"BooleanField", "IntegerField"},
    "int": {"IntegerField"},
    "smallint": {"SmallIntegerField"},
    "bigint": {"BigIntegerField"},
    "nanos": {"BigIntegerField"},
    "ms": {"BigIntegerField"},
    "count": {"BigIntegerField", "PositiveBigIntegerField"},
    "serial": {"BigAutoField", "AutoField", "BigIntegerField"},
    "ts": {"DateTimeField"},
    "date": {"DateField"},
}

BEGUN = "agent_run_begun_ix"  # of an expression: introspection has no columns for it, MariaDB no such index

by_table = pytest.mark.parametrize("table", TABLES, ids=[table.name for table in TABLES])
pytestmark = pytest.mark.django_db


def our_models() -> list[type[models.Model]]:
    return [model for label in ("agent", "governance") for model in apps.get_app_config(label).get_models()]


def text_length(kind: str) -> int | None:
    return int(kind.removeprefix("char")) if kind.startswith("char") else TEXT_LENGTHS.get(kind)


def constraints(table: str) -> Mapping[str, Any]:
    with connection.cursor() as cursor:
        return connection.introspection.get_constraints(cursor, table)


def test_the_tables_are_those_of_the_spec() -> None:
    there = {name for name in connection.introspection.table_names() if name.startswith(("agent_", "governance_"))}
    assert there == {table.name for table in TABLES}


@by_table
def test_columns_have_the_type_length_and_nullability_of_the_spec(table: Table) -> None:
    with connection.cursor() as cursor:
        described = connection.introspection.get_table_description(cursor, table.name)
    assert {column.name for column in described} == set(table.columns)
    for column in described:
        kind, nullable = table.columns[column.name]
        told = connection.introspection.get_field_type(column.type_code, column)
        length = text_length(kind)
        assert bool(column.null_ok) == nullable, column.name
        assert told in ({"CharField"} if length else INTROSPECTED[kind]), column.name
        if length:
            assert (column.internal_size or column.display_size) == length, column.name


@by_table
def test_keys_and_indexes_are_those_of_the_spec(table: Table) -> None:
    there = set()
    for name, facts in constraints(table.name).items():
        if facts["primary_key"]:
            there.add(("pk", tuple(facts["columns"])))
        elif facts["unique"]:
            there.add(("unique", tuple(facts["columns"])))
        elif name == BEGUN:
            continue
        elif facts["index"] and not facts["foreign_key"] and not _made_by_mysql(name):
            there.add(("index", tuple(facts["columns"])))
    assert there == table.keys


@by_table
def test_references_are_those_of_the_spec(table: Table) -> None:
    keys = [facts for facts in constraints(table.name).values() if facts["foreign_key"]]
    there = {facts["columns"][0]: facts["foreign_key"][0] for facts in keys}
    assert there == table.references


@by_table
@pytest.mark.only_on("mysql")
def test_exact_columns_have_an_exact_collation(table: Table) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, collation_name FROM information_schema.columns"
            " WHERE table_schema = DATABASE() AND table_name = %s AND data_type = 'varchar'",
            [table.name],
        )
        collations = dict(cursor.fetchall())
    assert set(collations) == {name for name, (kind, _) in table.columns.items() if text_length(kind)}
    for name, collation in collations.items():
        assert collation.startswith("utf8mb4_")
        exact = collation in {"utf8mb4_nopad_bin", "utf8mb4_0900_bin"}
        assert exact == ((table.name, name) not in FREE_TEXT), name


def test_no_table_points_to_a_user_and_every_name_fits_every_database() -> None:
    user = get_user_model()
    for model in our_models():
        assert all(field.related_model is not user for field in model._meta.get_fields())
        named = [one.name for one in (*model._meta.indexes, *model._meta.constraints)]
        assert all(name and len(name) <= 30 for name in named)
        assert not any(getattr(one, "condition", None) for one in (*model._meta.indexes, *model._meta.constraints))


def test_the_permissions_are_those_of_the_spec() -> None:
    ours = Permission.objects.filter(content_type__app_label__in=["agent", "governance"])
    named = {f"{one.content_type.app_label}.{one.codename}" for one in ours.select_related("content_type")}
    assert named >= {
        "governance.view_spend",
        "governance.view_reliability",
        "governance.view_conversations",
        "governance.export_governance",
        "governance.reprice_usage",
        "agent.view_actionproposal",
        "agent.decide_actionproposal",
        "agent.view_modelprice",
        "agent.change_modelprice",
    }
    assert {name for name in named if name.endswith("_spend")} == {"governance.view_spend"}


# ---- what a delete removes ----------------------------------------------------------------------------------


def test_a_deleted_thread_takes_its_rows_and_leaves_runs_and_ledger() -> None:
    thread = rows.thread()
    made = rows.tool_call(rows.message(thread))
    ThreadSummary.objects.create(
        thread=thread,
        up_to_seq=1,
        text="",
        policy_fingerprint="f",
        model_id="m",
        created_at=rows.NOW,
        updated_at=rows.NOW,
    )
    rows.run(thread_id=thread.pk)
    rows.usage(thread_id=thread.pk)
    thread.delete()
    assert not Message.objects.exists()
    assert not ToolCall.objects.filter(pk=made.pk).exists()
    assert not ThreadSummary.objects.exists()
    assert Run.objects.exists()
    assert UsageEntry.objects.exists()


def test_a_deleted_run_takes_its_journal() -> None:
    run = rows.run()
    RunStep.objects.create(run=run, position=0, name="persist:user", payload="{}", created_at=rows.NOW)
    run.delete()
    assert not RunStep.objects.exists()


def test_a_price_in_use_cannot_be_deleted() -> None:
    price = rows.price()
    rows.usage(price=price)
    with pytest.raises(ProtectedError), transaction.atomic():
        price.delete()


# ---- there and back -----------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_the_migrations_can_be_undone_and_done_again() -> None:
    try:
        MigrationExecutor(connection).migrate([("agent", None), ("governance", None)])
        left = connection.introspection.table_names()
        assert not [name for name in left if name.startswith(("agent_", "governance_"))]
    finally:
        executor = MigrationExecutor(connection)
        executor.migrate(executor.loader.graph.leaf_nodes())
    assert Thread.objects.count() == 0


def _made_by_mysql(name: str) -> bool:
    """MySQL needs an index for a foreign key and makes one where no key of ours begins with its column."""
    return connection.vendor == "mysql" and "_fk_" in name
