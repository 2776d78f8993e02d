"""A database in which an emoji cannot be stored is refused before a model is paid for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.checks import Tags, run_checks
from django.db import connection


@pytest.fixture
def old_characters(transactional_db: None) -> Iterator[None]:
    """The connection stands in a database of the old characters, as some hosts still make them."""
    ours = connection.settings_dict["NAME"]
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {ours}_old CHARACTER SET utf8mb3")
        cursor.execute(f"USE {ours}_old")
        yield
        cursor.execute(f"USE {ours}")
        cursor.execute(f"DROP DATABASE {ours}_old")


def found() -> set[str | None]:
    return {each.id for each in run_checks(tags=[Tags.database], databases=["default"])}


@pytest.mark.django_db
def test_this_database_can_store_an_emoji() -> None:
    assert "agent.E027" not in found()


@pytest.mark.only_on("mysql")
def test_one_that_cannot_is_named(old_characters: None) -> None:
    assert "agent.E027" in found()
