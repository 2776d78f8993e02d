"""The columns hold what they are given, compare it exactly, and refuse what a database would."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import IntegrityError, connection, models, transaction
from django.db.models import Q
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import Invalid
from agent.models import IdempotencyKey, Message, Run, Thread
from agent.models.fields import CleanCharField, CleanTextField, ExactCharField, JsonListField, JsonTextField
from tests.models import rows

pytestmark = pytest.mark.django_db

# Each of these is a value of its own, and a case-insensitive, accent-blind or padding collation would merge some.
ALIKE = [
    "ana",
    "Ana",
    "ANA",
    "ana ",
    " ana",
    "ána",
    "a\u0301na",
    "\uff41na",
    "ana\u200b",
    "😀",
    "😁",
    "ss",
    "ß",
    "",
    "\ufffd",
]
UNSTORABLE = ["\x00", "an\x00a", "\ud800", "ana\udfff"]
NASTY_JSON = [
    {"b": 1, "a": 2, "ä": {"z": [], "y": {}}},
    {"nul\x00key": "\x00", "lone": "\ud800", "emoji": "😀", "rtl": "\u202e"},
    [None, True, False, 0, -1, 10**30, 1.5, 1e-9, "", [], {}],
    "text",
    "",
    0,
    False,
    [],
    {},
]


@contextmanager
def refused(naming: str) -> Iterator[None]:
    """The block is refused as `Invalid`, naming the column, and leaves the transaction usable."""
    with pytest.raises(Invalid) as info, transaction.atomic():
        yield
    assert list(info.value.fields) == [naming]


def column(of: type[models.Model], name: str) -> Any:
    return of._meta.get_field(name)


# ---- exact --------------------------------------------------------------------------------------------------


def test_values_that_look_alike_are_told_apart() -> None:
    for ref in ALIKE:
        rows.thread(actor_ref=ref, external_id="one")
    assert set(Thread.objects.values_list("actor_ref", flat=True)) == set(ALIKE)
    for ref in ALIKE:
        assert [row.actor_ref for row in Thread.objects.owned_by(ref)] == [ref]
    assert Thread.objects.values("actor_ref").distinct().count() == len(ALIKE)


def test_a_unique_key_is_exact_too() -> None:
    rows.thread(external_id="x")
    with pytest.raises(IntegrityError), transaction.atomic():
        rows.thread(external_id="x")
    rows.thread(external_id="X")
    rows.thread(external_id="x ")
    rows.thread(external_id=None)
    rows.thread(external_id=None)
    assert Thread.objects.count() == 5


def test_an_empty_tenant_is_not_no_tenant() -> None:
    empty, none = rows.thread(tenant_ref=""), rows.thread(tenant_ref=None)
    assert Thread.objects.get(tenant_ref="") == empty
    assert Thread.objects.get(tenant_ref=None) == none


@pytest.mark.parametrize("value", UNSTORABLE, ids=ascii)
def test_an_exact_column_refuses_what_cannot_be_stored(value: str) -> None:
    row = rows.thread()
    with refused("actor_ref"):
        rows.thread(actor_ref=value)
    with refused("active_run_id"):
        Thread.objects.filter(pk=row.pk).update(active_run_id=value)
    with refused("actor_ref"):
        Thread.objects.bulk_create([Thread(actor_ref=value, created_at=rows.NOW, updated_at=rows.NOW)])
    with refused("persona"):
        row.persona = value
        Thread.objects.bulk_update([row], ["persona"])
    with refused("id"):
        Message.objects.create(thread_id=value, seq=1, role="user", content="", created_at=rows.NOW)
    assert Thread.objects.get().persona is None


@pytest.mark.parametrize("value", UNSTORABLE, ids=ascii)
def test_a_lookup_with_such_a_value_finds_nothing(value: str) -> None:
    row = rows.thread(actor_ref="\ufffd")
    rows.message(row)
    assert not Thread.objects.filter(pk=value).exists()
    for pattern in ("iexact", "contains", "icontains", "startswith", "iendswith", "regex"):
        assert not Thread.objects.filter(**{f"actor_ref__{pattern}": value}).exists()
        Thread.objects.filter(**{f"title__{pattern}": value}).exists()
    assert not Thread.objects.filter(actor_ref__gt="\ufffd", persona__lt=value).exists()
    assert not Message.objects.filter(thread_id=value).exists()
    assert not Message.objects.filter(thread_id__in=[value]).exists()
    assert list(Thread.objects.filter(Q(pk__in=[value, row.pk]))) == [row]
    assert list(Thread.objects.exclude(pk=value)) == [row]
    assert not Thread.objects.claim(value, "run")
    with pytest.raises(Thread.DoesNotExist):
        Thread.objects.get(pk=value)


@pytest.mark.parametrize(("name", "length"), [("actor_ref", 255), ("persona", 128), ("title", 255)])
def test_a_value_longer_than_its_column_is_refused_everywhere(name: str, length: int) -> None:
    fits = rows.thread(**{name: "😀" * length})
    fits.refresh_from_db()
    assert len(getattr(fits, name)) == length
    with refused(name):
        rows.thread(**{name: "😀" * (length + 1)})
    with refused(name):
        Thread.objects.bulk_create(
            Thread(**{"actor_ref": "ana", "created_at": rows.NOW, "updated_at": rows.NOW, name: "x" * (length + more)})
            for more in (0, 1)
        )
    assert not Thread.objects.filter(**{name: "x" * (length + 1)}).exists()


# ---- text ---------------------------------------------------------------------------------------------------


def test_text_is_kept_with_a_mark_for_what_cannot_be() -> None:
    dirty, clean = "a\x00b\ud800😀\u202e\r\n ", "a\ufffdb\ufffd😀\u202e\r\n "
    row = rows.message(rows.thread(title=dirty), content=dirty, reasoning="")
    row.refresh_from_db()
    assert (row.content, row.reasoning, row.thread.title) == (clean, "", clean)
    Message.objects.update(content="\x00")
    assert Message.objects.get(content="\x00").content == "\ufffd"


def test_long_text_is_kept_whole() -> None:
    text = "😀é" * 300_000
    row = rows.message(rows.thread(), content=text)
    row.refresh_from_db()
    assert row.content == text


def test_an_error_code_is_cleaned_and_compared_exactly() -> None:
    rows.run(error_code="late\x00")
    rows.run(error_code="Late\ufffd")
    assert Run.objects.filter(error_code="late\ufffd").count() == 1


# ---- JSON ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", NASTY_JSON, ids=ascii)
def test_json_reads_back_as_it_was_with_its_key_order(value: object) -> None:
    row = rows.run(input=value)
    row.refresh_from_db()
    assert repr(row.input) == repr(value)


def test_json_is_stored_as_compact_ascii_text() -> None:
    row = rows.message(rows.thread(), usage={"b": "é\x00", "a": [1, 2]})
    with connection.cursor() as cursor:
        quote = connection.ops.quote_name
        cursor.execute(f"SELECT {quote('usage')} FROM agent_message WHERE id = %s", [row.pk])
        assert cursor.fetchone() == (r'{"b":"\u00e9\u0000","a":[1,2]}',)


def test_absent_json_is_null_and_json_null_stays_where_null_may_not_be() -> None:
    row = rows.message(rows.thread(), usage=None)
    assert Message.objects.filter(usage__isnull=True).get() == row
    made = rows.run(input=None)
    made.refresh_from_db()
    assert made.input is None
    assert Run.objects.filter(input__isnull=False).exists()


def test_an_empty_list_of_a_message_is_absent() -> None:
    row = rows.message(rows.thread(), tool_calls=[], ui=[], follow_ups=["more?"])
    row.refresh_from_db()
    assert (row.tool_calls, row.ui, row.follow_ups) == (None, None, ["more?"])
    assert Message.objects.filter(tool_calls=None).exists()


@pytest.mark.parametrize(
    "value", [float("nan"), [float("inf")], {"x": object()}, {1, 2}], ids=["nan", "inf", "object", "set"]
)
def test_what_is_not_json_is_refused_and_names_the_column(value: object) -> None:
    with refused("input"):
        rows.run(input=value)
    with refused("input"):
        Run.objects.update(input=value)
    assert not Run.objects.exists()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=10,
    )
)
@pytest.mark.once
def test_any_json_passes_the_column_unchanged(value: object) -> None:
    field = column(IdempotencyKey, "outcome")
    stored = field.get_prep_value(value)
    assert stored.isascii()
    assert repr(field.from_db_value(stored, None, connection)) == repr(value)


# ---- migrations ---------------------------------------------------------------------------------------------


@pytest.mark.once
@pytest.mark.parametrize("kind", [ExactCharField, CleanCharField, CleanTextField, JsonTextField, JsonListField])
def test_a_migration_of_a_column_names_no_database(kind: type[models.Field[Any, Any]]) -> None:
    made = kind(max_length=64, null=True) if issubclass(kind, models.CharField) else kind(null=True)
    _name, path, args, options = made.deconstruct()
    assert path == f"agent.models.fields.{kind.__name__}"
    assert list(args) == []
    assert options == ({"max_length": 64, "null": True} if issubclass(kind, models.CharField) else {"null": True})
