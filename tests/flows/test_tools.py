"""A tool is offered to those it is open to, admitted with lawful arguments, and cannot poison the turn it runs in."""

from __future__ import annotations

import asyncio
import logging
import math
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, cast

import pytest
from django.contrib.auth.models import Permission, User
from django.db import DatabaseError, OperationalError, connection
from django.test import override_settings
from django.utils.translation import gettext_lazy
from pydantic import BaseModel

from agent import Described, OfferContext, Presentation, Tool, ToolContext, ToolError, agent, persona, tool
from agent.db import close_threads, is_transient
from agent.domain.actor import Actor
from agent.domain.model_calls import Frame
from agent.errors import Cancelled, Invalid, NotAllowed
from agent.flows import catalogue
from agent.flows.tools import Admitted, Offered, Refused, ToolResult, admit, execute, offer
from agent.providers.scripted import ScriptedProvider
from agent.registry import Registry, StoreReads, isolated_registry
from agent.store import OrmStore

ALICE = Actor("alice", ("staff",))
DEADLINE = 10
TENANT: ContextVar[str] = ContextVar("tenant", default="none")


@pytest.fixture(autouse=True)
def registry() -> Iterator[Registry]:
    with isolated_registry() as book:
        yield book
    close_threads()


def desk(**options: Any) -> None:
    agent(name="desk", prompt="You help.", **{"tools": "*", **options})(type("Desk", (), {}))


async def offered(registry: Registry, actor: Actor = ALICE, **told: Any) -> tuple[Offered, ...]:
    definition = registry.agent("desk")
    assert definition is not None
    return await offer(definition, ctx=OfferContext(actor=actor, agent_name="desk", **told))


def names(registry: Registry, actor: Actor = ALICE, **told: Any) -> list[str]:
    return [each.spec.name for each in asyncio.run(offered(registry, actor, **told))]


def context(emit: Callable[[Frame], None] = lambda _: None) -> ToolContext:
    store = cast("StoreReads", OrmStore())
    return ToolContext(actor=ALICE, thread_id="t", run_id="r", tool_call_id="c", store=store, emit=emit)


class Pauses:
    """Takes the place of sleeping, and keeps how long it would have been."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


async def started(
    registry: Registry,
    name: str,
    emit: Callable[[Frame], None] = lambda _: None,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    **arguments: Any,
) -> ToolResult:
    definition = registry.tool(name)
    assert definition is not None, registry.problems()
    async with asyncio.timeout(DEADLINE):
        return await execute(definition, definition.parse(arguments), context(emit), pause=pause)


def run(registry: Registry, name: str, **options: Any) -> ToolResult:
    return asyncio.run(started(registry, name, **options))


# ---- offered -------------------------------------------------------------------------------------------------------


def gated(**options: Any) -> None:
    @tool(**options)
    def gate(account: str) -> None:
        """A gated tool."""

    desk()


def test_a_tool_without_gates_is_offered_with_its_schema_and_kind(registry: Registry) -> None:
    gated()
    (only,) = asyncio.run(offered(registry))
    assert (only.kind, only.spec.name, only.spec.description) == ("read", "gate", "A gated tool.")
    assert only.spec.schema["required"] == ["account"]


def raising(_: object) -> bool:
    raise RuntimeError("the gate is broken")


@pytest.mark.parametrize(
    ("options", "open_"),
    [
        ({"enabled": False}, False),
        ({"is_enabled": lambda ctx: ctx.agent_name == "desk"}, True),
        ({"is_enabled": lambda ctx: ctx.agent_name != "desk"}, False),
        ({"is_enabled": raising}, False),
        ({"roles": ["staff", "boss"]}, True),
        ({"roles": "staff"}, True),
        ({"roles": ["boss"]}, False),
        ({"roles": []}, True),
        ({"can_use": lambda actor: actor.ref == "alice"}, True),
        ({"can_use": lambda actor: actor.ref == "bob"}, False),
        ({"can_use": raising}, False),
        ({"can_use": lambda _: Later()}, False),
        ({"describe": lambda _: Described(available=False)}, False),
        ({"describe": raising}, False),
        ({"describe": lambda _: 3}, False),
        ({"describe": lambda _: None}, True),
    ],
)
def test_each_gate_is_open_or_closed(registry: Registry, options: dict[str, Any], open_: bool) -> None:
    gated(**options)
    assert names(registry) == (["gate"] if open_ else [])


class Later:
    """An answer that would have to be awaited: it is no yes."""

    def __await__(self) -> Iterator[None]:
        return iter(())


def test_a_description_may_be_replaced(registry: Registry) -> None:
    gated(describe=lambda ctx: f"For {ctx.actor.ref}.")
    (only,) = asyncio.run(offered(registry))
    assert only.spec.description == "For alice."


def test_what_no_roles_and_empty_roles_mean_is_the_projects_to_say(registry: Registry) -> None:
    gated()
    with override_settings(AGENT={"TOOL_DEFAULT_ROLES": ["boss"]}):
        assert names(registry) == []
        assert names(registry, Actor("bob", ("boss",))) == ["gate"]
    tool(name="nobody", roles=())(type("Nobody", (Tool,), {"__doc__": "Closed.", "execute": lambda self: None}))
    assert "nobody" in names(registry)
    with override_settings(AGENT={"TOOL_EMPTY_ROLES": "deny"}):
        assert names(registry) == ["gate"]


def test_a_persona_narrows_the_agents_list(registry: Registry) -> None:
    gated()
    assert names(registry, allowed_tools=frozenset({"gate", "other"})) == ["gate"]
    assert names(registry, allowed_tools=frozenset()) == []


def test_an_action_passes_the_same_gates(registry: Registry) -> None:
    gated(kind="action", roles=("lead",))
    assert names(registry) == []
    refused = admit(asyncio.run(offered(registry)), "gate", {"account": "a"})
    assert isinstance(refused, Refused)
    assert refused.message == 'There is no tool "gate". There are no tools here.'


@pytest.mark.django_db(transaction=True)
def test_a_permission_is_todays_users(registry: Registry) -> None:
    gated(permission="auth.view_user")
    user = User.objects.create_user("alice")
    actor = Actor(str(user.pk))
    assert names(registry, actor) == []
    user.user_permissions.add(Permission.objects.get(codename="view_user"))
    assert names(registry, actor) == ["gate"]
    assert names(registry, Actor("anon:1")) == []
    assert names(registry, Actor("99999999999999999999999999")) == []
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert names(registry, actor) == []


def test_gates_that_call_the_host_leave_the_loop_in_one_hop_and_others_stay(registry: Registry) -> None:
    threads: list[str] = []

    def note(_: object) -> bool:
        threads.append(threading.current_thread().name)
        return True

    gated(can_use=note, is_enabled=note)
    assert names(registry) == ["gate"]
    assert len(set(threads)) == 1
    assert threads[0] != threading.current_thread().name


def test_only_some_may_be_asked_again_when_they_are_called(registry: Registry) -> None:
    asked: list[str] = []
    gated(can_use=lambda actor: not asked.append("gate"))  # type: ignore[func-returns-value]

    @tool(can_use=lambda actor: not asked.append("other"))  # type: ignore[func-returns-value]
    def other(account: str) -> None:
        """Another."""

    definition = registry.agent("desk")
    assert definition is not None
    again = asyncio.run(offer(definition, ctx=OfferContext(actor=ALICE), only=frozenset({"gate"})))
    assert ([each.spec.name for each in again], asked) == (["gate"], ["gate"])


# ---- admitted ------------------------------------------------------------------------------------------------------


def test_a_lawful_call_is_admitted_with_its_validated_arguments(registry: Registry) -> None:
    gated()
    admitted = admit(asyncio.run(offered(registry)), "gate", {"account": "a"})
    assert isinstance(admitted, Admitted)
    assert (admitted.offered.spec.name, admitted.input.model_dump()) == ("gate", {"account": "a"})


def test_the_answer_to_a_wrong_name_tells_of_no_tool_that_the_actor_may_not_use(registry: Registry) -> None:
    gated()
    for name in ("secret_refund", "secret_audit"):
        tool(name=name, roles=["boss"])(type("Secret", (Tool,), {"__doc__": "S.", "execute": lambda self: None}))
    tools = asyncio.run(offered(registry))
    for name in ("secret_refund", "no_such_tool"):
        refused = admit(tools, name, {})
        assert isinstance(refused, Refused)
        assert refused == Refused(code="unknown_tool", message=f'There is no tool "{name}". The tools here are: gate.')


def test_an_endless_or_unstorable_name_is_not_repeated_whole(registry: Registry) -> None:
    gated()
    refused = admit(asyncio.run(offered(registry)), "\x00" + "x" * 100_000, {})
    assert isinstance(refused, Refused)
    assert len(refused.message) < 200
    assert "\x00" not in refused.message


@pytest.mark.parametrize("raw", [{"__raw": "{"}, {}, {"account": 3, "x": 1}, None, [1], "text", {"account": {}}])
def test_unlawful_arguments_are_refused_with_a_sentence(registry: Registry, raw: Any) -> None:
    gated()
    refused = admit(asyncio.run(offered(registry)), "gate", raw)
    assert isinstance(refused, Refused)
    assert refused.code == "invalid_arguments"
    assert refused.message.startswith("The arguments ")


# ---- executed ------------------------------------------------------------------------------------------------------


class Balance(BaseModel):
    cents: int
    day: date


RETURNED = [
    (None, None),
    ("", ""),
    ([], []),
    ({}, {}),
    (0, 0),
    ("\x00\ud800😀", "\x00\ud800😀"),
    ({1: "a"}, {"1": "a"}),
    ((1, 2), [1, 2]),
    (Balance(cents=3, day=date(2026, 1, 2)), {"cents": 3, "day": "2026-01-02"}),
    ([Balance(cents=3, day=date(2026, 1, 2))], [{"cents": 3, "day": "2026-01-02"}]),
    (
        {"at": datetime(2026, 1, 2, tzinfo=UTC), "price": Decimal("1.50")},
        {"at": "2026-01-02T00:00:00Z", "price": "1.50"},
    ),
    (gettext_lazy("Yes"), "Yes"),
]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(("value", "output"), RETURNED)
def test_what_a_body_returns_is_written_as_json(
    registry: Registry, value: object, output: object, is_async: bool
) -> None:
    async def later() -> object:
        """Answer."""
        return value

    def now() -> object:
        """Answer."""
        return value

    tool(name="answer")(later if is_async else now)
    result = run(registry, "answer")
    assert (result.output, result.error, result.detail) == (output, None, None)
    assert result.ms >= 0


def _circle() -> list[object]:
    circle: list[object] = []
    circle.append(circle)
    return circle


@pytest.mark.parametrize("value", [math.nan, {"a": math.inf}, object(), {"a": User()}, _circle(), User.objects.all()])
def test_what_json_cannot_hold_is_a_failure_with_a_sentence(registry: Registry, value: object) -> None:
    tool(_documented(lambda: value))
    result = run(registry, "told")
    assert (result.output, result.error_code) == (None, "output_not_json")
    assert (result.error or "").startswith('The answer of the tool "told" cannot be written as JSON: ')
    assert len(result.error or "") < 300


def _documented(body: Callable[..., object], name: str = "told") -> Any:
    body.__doc__, body.__name__ = "Told.", name
    return body


def _raise(error: BaseException) -> Callable[[], None]:
    def body() -> None:
        raise error

    return cast("Callable[[], None]", _documented(body))


@pytest.mark.parametrize(
    "error",
    [
        ValueError("marker"),
        StopIteration("marker"),
        SystemExit("marker"),
        asyncio.CancelledError("marker"),
        KeyError("m"),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_whatever_a_body_raises_is_a_failure_of_the_call_alone(
    registry: Registry, error: BaseException, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        _raise(error)()

    tool(_documented(body) if is_async else _raise(error))
    with caplog.at_level(logging.ERROR, "agent.tools"):
        result = run(registry, "told")
    assert (result.output, result.error_code) == (None, "tool_failed")
    assert result.error == 'The tool "told" failed unexpectedly. Nothing more is known of it.'
    assert "Error" in (result.detail or "") or "Exit" in (result.detail or "") or "Stop" in (result.detail or "")
    assert "call c" in caplog.text


def test_a_tool_error_speaks_to_the_model(registry: Registry) -> None:
    tool(_raise(ToolError("There is no such account.")))
    result = run(registry, "told")
    assert (result.error, result.error_code, result.detail) == ("There is no such account.", "tool_failed", None)


def test_secrets_in_an_exception_reach_neither_the_row_nor_the_log(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    text = "cannot reach postgres://u:marker-a@db/x with Authorization: Bearer marker-b12345 and api_key='marker-c'"
    tool(_raise(RuntimeError(text)))
    with caplog.at_level(logging.INFO):
        result = run(registry, "told")
    assert "postgres://u:" in (result.detail or "")
    assert "marker" not in f"{result}{caplog.text}"


@pytest.mark.parametrize("is_async", [False, True])
def test_the_runs_own_signals_pass_through(registry: Registry, is_async: bool) -> None:
    async def body() -> None:
        raise Cancelled

    tool(_documented(body) if is_async else _raise(Cancelled()))
    with pytest.raises(Cancelled):
        run(registry, "told")


def test_a_failure_among_parallel_siblings_is_its_own(registry: Registry) -> None:
    @tool
    def part(number: int) -> int:
        """A part."""
        if number == 1:
            raise ValueError(number)
        return number

    async def together() -> list[ToolResult]:
        return list(await asyncio.gather(*(started(registry, "part", number=number) for number in range(3))))

    results = asyncio.run(together())
    assert [(each.output, each.error_code) for each in results] == [(0, None), (None, "tool_failed"), (2, None)]


def test_sync_bodies_run_beside_each_other_off_the_loop_in_the_callers_context(registry: Registry) -> None:
    both = threading.Barrier(2, timeout=DEADLINE)
    main = threading.current_thread()

    @tool
    def meet() -> str:
        """Wait for the other."""
        both.wait()
        assert threading.current_thread() is not main
        return TENANT.get()

    async def together() -> list[ToolResult]:
        TENANT.set("acme")
        return list(await asyncio.gather(started(registry, "meet"), started(registry, "meet")))

    assert [each.output for each in asyncio.run(together())] == ["acme", "acme"]


def test_a_plain_function_may_answer_a_coroutine(registry: Registry) -> None:
    async def inner() -> int:
        return 3

    tool(_documented(lambda: inner()))
    assert run(registry, "told").output == 3


@pytest.mark.parametrize("is_async", [False, True])
def test_after_its_timeout_a_call_has_failed_and_its_work_goes_on(registry: Registry, is_async: bool) -> None:
    begun, may_end = threading.Event(), threading.Event()
    ended = threading.Event()
    frames: list[Frame] = []

    def slow(ctx: ToolContext) -> None:
        begun.set()
        may_end.wait(DEADLINE)
        ctx.emit_ui("late", {"a": 1})
        ended.set()

    async def slow_async(ctx: ToolContext) -> None:
        await asyncio.to_thread(slow, ctx)

    tool(timeout=0.02)(_documented(slow_async if is_async else slow))

    async def story() -> ToolResult:
        result = await started(registry, "told", emit=frames.append)
        await asyncio.to_thread(begun.wait, DEADLINE)
        assert not ended.is_set()
        may_end.set()
        assert await asyncio.to_thread(ended.wait, DEADLINE)
        return result

    result = asyncio.run(story())
    assert result.error_code == "tool_timeout"
    assert result.error == 'The tool "told" did not answer within 0.02 seconds.'
    assert (frames, result.ui) == ([], ())


def test_the_projects_timeout_is_for_tools_without_their_own(registry: Registry) -> None:
    waiting = asyncio.Event()

    async def wait() -> None:
        await waiting.wait()

    tool(_documented(wait))
    with override_settings(AGENT={"TOOL_TIMEOUT_SECONDS": 0.01}):
        assert run(registry, "told").error_code == "tool_timeout"


def _deadlock() -> DatabaseError:
    return OperationalError(1213, "Deadlock found")


class Flaky(Tool):
    """Meets a busy database a few times."""

    busy = 1
    raised: Callable[[], Exception] = staticmethod(_deadlock)

    def __init__(self) -> None:
        self.keys: list[str] = []

    def execute(self, ctx: ToolContext) -> int:
        self.keys.append(ctx.idempotency_key)
        if len(self.keys) <= self.busy:
            raise self.raised()
        return len(self.keys)


@pytest.mark.parametrize(
    ("busy", "raised", "output", "pauses"),
    [
        (1, _deadlock, 2, [0.15]),
        (2, _deadlock, None, [0.15]),
        (1, lambda: OperationalError(2006, "Server has gone away"), None, []),
        (1, lambda: ValueError("no"), None, []),
    ],
)
def test_a_busy_database_is_met_again_once(
    registry: Registry, busy: int, raised: Callable[[], Exception], output: object, pauses: list[float]
) -> None:
    tool(type("Once", (Flaky,), {"__doc__": "Meets.", "busy": busy, "raised": staticmethod(raised)}))
    pause = Pauses()
    result = run(registry, "once", pause=pause)
    assert (result.output, pause.seconds) == (output, pauses)
    assert result.error_code == (None if output else "tool_failed")
    definition = registry.tool("once")
    assert definition is not None
    assert set(definition.body.__self__.keys) == {"r:c"}  # type: ignore[union-attr]


def _caused(cause: Exception, *arguments: object) -> OperationalError:
    error = OperationalError(*arguments)
    error.__cause__ = cause
    return error


class PostgresError(Exception):
    def __init__(self, sqlstate: str) -> None:
        self.sqlstate = sqlstate


def _sqlite(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("locked")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (_caused(PostgresError("40P01"), "deadlock detected"), True),
        (_caused(PostgresError("40001"), "could not serialize"), True),
        (_caused(PostgresError("55P03"), "lock timeout"), True),
        (_caused(PostgresError("57014"), "statement timeout"), False),
        (_caused(_sqlite(sqlite3.SQLITE_BUSY), "database is locked"), True),
        (_caused(_sqlite(sqlite3.SQLITE_BUSY_SNAPSHOT), "database is locked"), True),
        (_caused(_sqlite(sqlite3.SQLITE_LOCKED), "table is locked"), True),
        (_caused(_sqlite(sqlite3.SQLITE_FULL), "disk is full"), False),
        (OperationalError(1205, "Lock wait timeout exceeded"), True),
        (OperationalError(1020, "Record has changed since last read"), True),
        (OperationalError(1045, "Access denied"), False),
        (OperationalError(), False),
        (ValueError(1213), False),
    ],
)
def test_what_passes_by_itself_is_told_apart_on_every_database(error: Exception, transient: bool) -> None:
    assert is_transient(error) is transient


def test_a_real_lock_is_transient(tmp_path: Any) -> None:
    with (
        sqlite3.connect(tmp_path / "a.sqlite3", isolation_level=None) as one,
        sqlite3.connect(tmp_path / "a.sqlite3", isolation_level=None, timeout=0) as two,
    ):
        one.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError) as locked:
            two.execute("BEGIN IMMEDIATE")
        one.execute("ROLLBACK")
    one.close()
    two.close()
    assert is_transient(_caused(locked.value, *locked.value.args))


@pytest.mark.django_db(transaction=True)
def test_a_sync_body_may_use_the_orm(registry: Registry) -> None:
    User.objects.create_user("alice")

    @tool
    def count_users() -> int:
        """How many users there are."""
        return User.objects.count()

    assert run(registry, "count_users").output == 1
    assert connection.is_usable()


def test_a_tool_reads_the_store_and_has_no_way_to_write(registry: Registry) -> None:
    @tool
    def look(ctx: ToolContext) -> list[str]:
        """What there is."""
        return [name for name in dir(ctx.store) if not name.startswith("_")]

    assert set(run(registry, "look").output) == {name for name in vars(StoreReads) if not name.startswith("_")}


@pytest.mark.parametrize("is_async", [False, True])
def test_components_are_shown_when_they_are_emitted_and_the_last_of_each_is_kept(
    registry: Registry, is_async: bool
) -> None:
    def body(ctx: ToolContext) -> str:
        ctx.emit_ui("bar", {"at": 1}, partial=True)
        ctx.emit_ui("bar", {"at": 2})
        ctx.emit_ui("card", {"a": 1}, id="mine")
        ctx.emit_ui("card", {"a": 2}, id="mine")
        ctx.emit_ui("gone", {"a": 1})
        ctx.emit_ui("gone", {})
        return "done"

    async def later(ctx: ToolContext) -> str:
        return body(ctx)

    frames: list[Frame] = []
    tool(_documented(later if is_async else body))
    result = run(registry, "told", emit=frames.append)
    assert [(each["id"], each["props"], each.get("partial")) for each in frames] == [
        ("c:bar", {"at": 1}, True),
        ("c:bar", {"at": 2}, None),
        ("mine", {"a": 1}, None),
        ("mine", {"a": 2}, None),
        ("c:gone", {"a": 1}, None),
        ("c:gone", {}, None),
    ]
    assert result.ui == (
        {"id": "c:bar", "component": "bar", "props": {"at": 2}, "toolCallId": "c"},
        {"id": "mine", "component": "card", "props": {"a": 2}, "toolCallId": "c"},
    )


def test_a_presentation_is_shown_beside_the_output(registry: Registry) -> None:
    def present(given: Any, output: Any) -> Presentation:
        return Presentation(f"{given.who} has {output}", [{"component": "card", "props": {"n": output}}])

    @tool(present=present)
    def count(who: str) -> int:
        """Count."""
        return 3

    result = run(registry, "count", who="Ana")
    assert (result.output, result.text) == (3, "Ana has 3")
    assert result.ui == ({"id": "c:card", "component": "card", "props": {"n": 3}, "toolCallId": "c"},)


def test_a_presentation_that_fails_takes_nothing_from_the_result(registry: Registry) -> None:
    @tool(present=lambda given, output: 1 / 0)  # type: ignore[arg-type, return-value]
    def count() -> int:
        """Count."""
        return 3

    result = run(registry, "count")
    assert (result.output, result.error, result.text, result.ui) == (3, None, None, ())


# ---- catalogues ----------------------------------------------------------------------------------------------------


def test_agents_are_listed_for_those_they_are_open_to(registry: Registry) -> None:
    calm = persona("calm", "Calm", "Be calm.")
    boss = persona("boss", "Boss", "Be the boss.", roles=["boss"])
    desk(label="The desk", description="Helps.", personas=[calm, boss])
    agent(name="vault", prompt="p", roles=["boss"])(type("Vault", (), {}))
    assert catalogue.agents_for(ALICE) == [
        {
            "name": "desk",
            "label": "The desk",
            "description": "Helps.",
            "personas": [{"id": "calm", "label": "Calm"}],
            "allowAsk": False,
        }
    ]
    catalogue.check_agent("desk", ALICE)
    with pytest.raises(Invalid) as unknown:
        catalogue.check_agent("nowhere", ALICE)
    assert unknown.value.code == "agent_not_found"
    with pytest.raises(NotAllowed):
        catalogue.check_agent("vault", ALICE)
    catalogue.check_persona("calm", "desk", ALICE)
    with pytest.raises(NotAllowed):
        catalogue.check_persona("boss", "desk", ALICE)
    with pytest.raises(Invalid) as nobody:
        catalogue.check_persona("calm", "vault", ALICE)
    assert nobody.value.code == "persona_not_found"


def test_tools_are_listed_by_the_gates_of_the_run(registry: Registry) -> None:
    gated()
    tool(name="hidden", roles=["boss"])(type("Hidden", (Tool,), {"__doc__": "H.", "execute": lambda self: None}))
    tool(name="pay", kind="action", roles=["boss"])(
        type("Pay", (Tool,), {"__doc__": "P.", "execute": lambda self: None})
    )
    for asked in ("desk", "*", None):
        (only,) = catalogue.tools_for(ALICE, asked)
        assert (only["name"], only["kind"], only["description"]) == ("gate", "read", "A gated tool.")
    with pytest.raises(Invalid):
        catalogue.tools_for(ALICE, "nowhere")


MODELS = [
    {"id": "big", "label": "Big", "roles": ["boss"]},
    {"id": "small", "label": "Small", "default": True},
    {"id": "off", "available": False},
    {"id": "vaults", "agents": ["vault"]},
]
CATALOGUE = {"PROVIDERS": {"s": ScriptedProvider([])}, "MODELS": MODELS}


@override_settings(AGENT=CATALOGUE)
def test_models_are_listed_and_checked_for_actor_and_agent(registry: Registry) -> None:
    desk()
    agent(name="vault", prompt="p", model="vaults", lock_model=True)(type("Vault", (), {}))
    assert catalogue.models_for(ALICE, "desk") == [
        {"id": "small", "label": "Small", "available": True, "locked": False, "default": True},
        {"id": "off", "label": "off", "available": False, "locked": False, "default": False},
    ]
    locked = {each["id"]: (each["available"], each["locked"]) for each in catalogue.models_for(ALICE, "vault")}
    assert locked == {"small": (False, False), "off": (False, False), "vaults": (True, True)}
    catalogue.check_model("small", "desk", ALICE)
    catalogue.check_model("big", "desk", Actor("bob", ("boss",)))
    for model in ("big", "off", "vaults", "unknown"):
        with pytest.raises(Invalid) as refused:
            catalogue.check_model(model, "desk", ALICE)
        assert refused.value.code == "model_not_offered"


@override_settings(AGENT={})
def test_without_a_catalogue_no_send_may_name_a_model(registry: Registry) -> None:
    desk(model="mine")
    with pytest.raises(Invalid):
        catalogue.check_model("mine", "desk", ALICE)
    assert catalogue.resolve_model("desk", None, None) == "mine"
    assert catalogue.models_for(ALICE, "desk") == []


@override_settings(AGENT=CATALOGUE)
@pytest.mark.parametrize(
    ("options", "send", "pin", "model"),
    [
        ({}, None, None, None),
        ({"model": "own"}, None, None, "own"),
        ({"model": "own"}, None, "small", "small"),
        ({"model": "own"}, "big", "small", "big"),
        ({"model": "own", "lock_model": True}, "big", "small", "own"),
        ({"model": "own"}, None, "withdrawn", "own"),
        ({"model": "own"}, None, "off", "own"),
    ],
)
def test_the_model_of_a_turn(
    registry: Registry, options: dict[str, Any], send: str | None, pin: str | None, model: str | None
) -> None:
    desk(**options)
    assert catalogue.resolve_model("desk", send, pin) == model


@override_settings(AGENT=CATALOGUE)
def test_a_sends_model_that_does_not_serve_the_agent_is_refused(registry: Registry) -> None:
    desk()
    with pytest.raises(Invalid) as refused:
        catalogue.resolve_model("desk", "vaults", None)
    assert refused.value.code == "model_not_offered"


def test_the_agent_of_a_turn(registry: Registry) -> None:
    assert catalogue.resolve_agent(None, None) is None
    desk()
    assert catalogue.resolve_agent(None, None) == "desk"
    agent(name="vault", prompt="p")(type("Vault", (), {}))
    assert catalogue.resolve_agent(None, None) is None
    assert catalogue.resolve_agent(None, "vault") == "vault"
    assert catalogue.resolve_agent("desk", "vault") == "desk"
    with override_settings(AGENT={"DEFAULT_AGENT": "vault"}):
        assert catalogue.resolve_agent(None, None) == "vault"
        assert catalogue.resolve_agent(None, "removed") == "vault"
