"""Each numbered check speaks when its mistake is made, and is silent about a site that is set up well."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import celery
import pytest
from django.core import checks
from django.core.checks.registry import registry as registered_checks
from django.db import connection
from django.test import override_settings

from agent import History, Tool, agent, tool, window_history
from agent.providers.scripted import ScriptedProvider
from agent.registry import Registry, isolated_registry
from agent.store import OrmStore
from agent.store.base import CAPABILITIES, REQUIRED


@pytest.fixture(autouse=True)
def registry() -> Iterator[Registry]:
    with isolated_registry() as book:
        yield book


def ours(*, deploy: bool = False) -> list[checks.CheckMessage]:
    asked = registered_checks.get_checks(include_deployment_checks=deploy)
    own = [check for check in asked if check.__module__ == "agent.checks"]
    return [message for check in own for message in check(app_configs=None, databases=None)]


def told(wanted: str, *, deploy: bool = False, **settings: Any) -> str:
    """What that check says under these settings, with a provider; nothing else of ours may speak."""
    settings = {"PROVIDERS": {"scripted": ScriptedProvider([])}, **settings}
    with override_settings(AGENT=settings):
        found = ours(deploy=deploy)
    assert {each.id for each in found} <= {wanted}
    return "\n".join(f"{each.msg} {each.hint or ''}" for each in found)


class Elsewhere:
    """A host's own runner."""


def without(*names: str) -> type[OrmStore]:
    return type("Lesser", (OrmStore,), {"capabilities": frozenset(CAPABILITIES) - {*names}})


def vault(**options: Any) -> None:
    tool(name="vault", kind="action", **options)(
        type("Vault", (Tool,), {"__doc__": "Opens the vault.", "execute": lambda self: None})
    )


def test_a_site_that_is_set_up_well_is_left_in_peace() -> None:
    assert told("none", PROVIDERS={"s": ScriptedProvider([])}, HISTORY=History(max_messages=3)) == ""
    assert told("none", deploy=True) == ""


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"MAX_STEP": 8}, "AGENT['MAX_STEP']: there is no such setting"),
        ({"MAX_STEPS": "8"}, "AGENT['MAX_STEPS']: must be a whole number"),
        ({"STORE": "nowhere.Store"}, "AGENT['STORE']: 'nowhere.Store' does not import"),
        ({"ACTOR_RESOLVER": "agent.actors.Nobody"}, "AGENT['ACTOR_RESOLVER']: 'agent.actors.Nobody' does not import"),
        ({"PERMISSION_CLASSES": ["nowhere.Class"]}, "AGENT['PERMISSION_CLASSES']: 'nowhere.Class'"),
        ({"SINK": "nowhere.Sink"}, "AGENT['SINK']: 'nowhere.Sink'"),
        ({"RUNNER": "nowhere.Runner"}, "AGENT['RUNNER']: 'nowhere.Runner'"),
        ({"PROVIDERS": {"a": "nowhere.Provider"}}, "AGENT['PROVIDERS.a']: 'nowhere.Provider'"),
        ({"PROVIDERS": {"a": object(), "b": object()}}, 'AGENT["DEFAULT_PROVIDER"]: name one of PROVIDERS'),
        ({"PROVIDERS": {"a": object()}, "DEFAULT_PROVIDER": "b"}, "PROVIDERS has no 'b'"),
        ({"MODELS": [{"id": "m", "provider": "b"}]}, "PROVIDERS has no 'b', which 'm' names"),
        ({"SINK_OPTIONS": {"poll": 1}}, "AGENT['SINK_OPTIONS']['poll']: there is no such option; there are poll_ms,"),
        (
            {"SINK_OPTIONS": {"poll_ms": -1}},
            "AGENT['SINK_OPTIONS']['poll_ms']: must be a whole number from 1 up",
        ),
        ({"SINK_OPTIONS": {"flush_ms": True}}, "['flush_ms']: must be a whole number from 0 up, not True"),
        ({"SINK_OPTIONS": {"auto_purge": 1}}, "['auto_purge']: must be True or False, not 1"),
        ({"SINK_OPTIONS": {"purge_batch": 0}}, "['purge_batch']: must be a whole number from 1 up"),
        ({"SINK_OPTIONS": {"listen_database": "direct"}}, "['listen_database']: must be the name of a database"),
        ({"SINK_OPTIONS": {"poll_ms": 500, "idle_poll_ms": 400}}, "['idle_poll_ms']: must not be below poll_ms (500)"),
        ({"SINK": "redis"}, "AGENT['SINK_OPTIONS']['url']: the sink 'redis' needs the url of a Redis server"),
        (
            {"SINK": "redis", "SINK_OPTIONS": {"url": "http://me:secret@x"}},
            "['url']: must be the url of a Redis server",
        ),
    ],
)
def test_e010_names_the_setting(settings: dict[str, Any], text: str) -> None:
    assert text in told("agent.E010", **settings)


def test_e010_asks_for_a_provider_where_agents_are_declared() -> None:
    agent(name="shop", prompt="Help.")(type("Shop", (), {}))
    assert "AGENT['PROVIDERS']: agents are declared" in told("agent.E010", PROVIDERS={})
    assert told("none") == ""


def test_the_url_of_a_server_is_not_shown() -> None:
    assert "secret" not in told("agent.E010", SINK="redis", SINK_OPTIONS={"url": "http://me:secret@x"})


def test_options_of_a_hosts_own_sink_are_its_own_business() -> None:
    assert told("none", SINK=f"{__name__}.Elsewhere", SINK_OPTIONS={"anything": 1}) == ""


def test_options_that_another_sink_reads_are_no_mistake() -> None:
    assert told("none", SINK="memory", SINK_OPTIONS={"poll_ms": 2000, "url": "redis://localhost"}) == ""


def test_w014_knows_of_several_web_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_CONCURRENCY", "2")
    assert "WEB_CONCURRENCY" in told("agent.W014", SINK="memory")
    monkeypatch.setenv("WEB_CONCURRENCY", "1")
    assert told("none", SINK="memory") == ""


def test_e010_names_every_mistake_at_once() -> None:
    assert told("agent.E010", MAX_STEP=8, MAX_STEPS=0).count("AGENT[") == 2


def test_e010_says_that_a_provider_does_not_take_its_options() -> None:
    entry = {"class": "agent.providers.scripted.ScriptedProvider", "scrip": []}
    assert "AGENT[\"PROVIDERS\"]['s'] cannot be made: " in told("agent.E010", PROVIDERS={"s": entry})


def test_e020_names_what_a_declared_capability_lacks() -> None:
    class Hollow:
        capabilities = REQUIRED | {"idempotency", "frames", "confirm_tokens"}

    text = told("agent.E020", STORE=Hollow)
    assert "declares 'frames' and lacks append_frame, append_frames" in text
    assert text.count("declares") == 7


def test_e021_names_a_required_capability() -> None:
    assert "'ledger'" in told("agent.E021", STORE=without("ledger"))


@pytest.mark.parametrize("name", ["runs", "journal"])
def test_e022_wants_a_recorded_run_for_another_process(name: str) -> None:
    assert told("agent.E022", STORE=without(name)) == ""
    runner = f"{__name__}.Elsewhere"
    assert "must be 'inline'" in told("agent.E022", STORE=without(name), RUNNER=runner)


@pytest.fixture
def broker() -> Iterator[Callable[[str | None], None]]:
    """Name the broker of the Celery application that is current here."""
    conf = celery.current_app.conf
    before = conf.broker_url

    def name(url: str | None) -> None:
        conf.update(broker_url=url)

    yield name
    name(before)


def test_e032_wants_a_broker_for_celery(broker: Callable[[str | None], None]) -> None:
    broker(None)
    assert "no broker" in told("agent.E032", RUNNER="celery")
    assert told("agent.E032") == ""
    broker("redis://127.0.0.1/0")
    assert told("agent.E032", RUNNER="celery") == ""


def test_w014_wants_a_sink_that_workers_share(broker: Callable[[str | None], None]) -> None:
    broker("redis://127.0.0.1/0")
    assert "memory" in told("agent.W014", RUNNER="celery", SINK="memory")
    assert told("agent.W014", SINK="memory") == ""


def test_e024_wants_frames_for_the_database_sink() -> None:
    assert "frames" in told("agent.E024", STORE=without("frames"))
    assert told("agent.E024", STORE=without("frames"), SINK="memory") == ""


def test_e023_wants_what_proposals_need_where_something_makes_them() -> None:
    for name in ("proposals", "proposal_replacement", "proposal_worker", "proposal_outcomes", "queue"):
        assert name in told("agent.E023", STORE=without(name), ACTION_APPROVAL_MODE="independent")
        assert told("agent.E023", STORE=without(name)) == ""
    assert told("agent.E023", ACTION_APPROVAL_MODE="independent") == ""


def test_e025_wants_a_poll_well_within_the_lease() -> None:
    assert told("agent.E025", PROPOSAL_POLL_SECONDS=10, PROPOSAL_LEASE_SECONDS=30)
    assert told("agent.E025", PROPOSAL_POLL_SECONDS=9, PROPOSAL_LEASE_SECONDS=30) == ""


def test_e026_wants_somebody_who_knows_who_that_is_now() -> None:
    assert told("agent.E026", BACKGROUND_ACTOR_RESOLVER=object(), ACTION_APPROVAL_MODE="independent")
    assert told("agent.E026", BACKGROUND_ACTOR_RESOLVER=object()) == ""
    assert told("agent.E026", ACTION_APPROVAL_MODE="independent") == ""


@pytest.mark.parametrize("bound", [0, -3, 1.5, True])
def test_e030_names_bounds_that_bound_nothing(registry: Registry, bound: Any) -> None:
    assert f'AGENT["HISTORY"]: max_tokens is {bound!r}' in told("agent.E030", HISTORY={"max_tokens": bound})
    assert 'AGENT["HISTORY_POLICY"]: max' in told("agent.E030", HISTORY_POLICY=window_history(bound))
    agent(name="desk", prompt="p", history=History(max_messages=bound))(type("Desk", (), {}))
    assert f"Agent 'desk': max_messages is {bound!r}" in told("agent.E030")


def test_e031_wants_a_gateway_before_headers_are_believed() -> None:
    resolver = "agent.actors.HeaderActorResolver"
    assert "TRUSTED_GATEWAY" in told("agent.E031", ACTOR_RESOLVER=resolver)
    assert told("agent.E031", ACTOR_RESOLVER=resolver, TRUSTED_GATEWAY=True) == ""


class VendorProvider:
    """A provider whose library is not installed."""

    def __init__(self) -> None:
        raise ImportError("openai is not installed. For this model: pip install 'django-steward[openai]'")


def test_e032_names_the_extra_that_a_provider_lacks() -> None:
    assert "django-steward[openai]" in told("agent.E032", PROVIDERS={"v": f"{__name__}.VendorProvider"})


def test_e033_names_taken_and_unknown_names_and_bad_schemas(registry: Registry) -> None:
    for number in range(2):
        agent(name="desk", prompt="p", tools=["nowhere"])(type(f"Desk{number}", (), {}))

    @tool
    def untyped(account) -> None:  # type: ignore[no-untyped-def]
        """Text."""

    text = told("agent.E033", DEFAULT_AGENT="nobody", MODELS=[{"id": "m", "agents": ["no-one"]}])
    for part in (
        "'desk' is declared twice",
        "unknown tool 'nowhere'",
        "parameter 'account' has no type hint",
        "unknown agent 'nobody'",
        "unknown agent 'no-one', which 'm' names",
    ):
        assert part in text


class Plain(ScriptedProvider):
    """A vendor whose models call no tools."""

    supports_tools = False


@pytest.mark.parametrize(
    ("options", "speaks"),
    [
        ({"model": "plain"}, True),
        ({"model": "plain", "tools": [], "allow_ask": True}, True),
        ({}, True),  # people may choose the model
        ({"model": "able", "lock_model": True}, False),
        ({"model": "plain", "tools": []}, False),
    ],
)
def test_e033_keeps_agents_with_tools_from_providers_without(options: dict[str, Any], speaks: bool) -> None:
    vault()
    agent(name="desk", **{"prompt": "p", "tools": ["vault"], **options})(type("Desk", (), {}))
    text = told(
        "agent.E033",
        PROVIDERS={"able": ScriptedProvider([]), "plain": Plain([])},
        DEFAULT_PROVIDER="able",
        MODELS=[{"id": "able", "label": "A", "default": True}, {"id": "plain", "label": "P", "provider": "plain"}],
    )
    assert ("Agent 'desk'" in text and "'plain' supports none" in text) == speaks


def test_e034_wants_two_pairs_for_four_eyes(registry: Registry) -> None:
    vault(four_eyes=True)
    assert "'vault'" in told("agent.E034")


def test_e034_is_content_with_another_approver(registry: Registry) -> None:
    vault(four_eyes=True, approver="boss")
    assert told("agent.E034") == ""


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize(
    ("mode", "speaks"), [(None, True), ("DEFERRED", True), ("IMMEDIATE", False), ("exclusive", False)]
)
def test_w010_wants_a_mode_of_sqlite_that_does_not_lock_itself_out(mode: str | None, speaks: bool) -> None:
    options = connection.settings_dict["OPTIONS"]
    before = dict(options)
    try:
        options["transaction_mode"] = mode
        assert ("IMMEDIATE" in told("agent.W010")) is speaks
    finally:
        options.clear()
        options.update(before)


def test_w011_knows_a_store_that_forgets_which_tokens_were_used() -> None:
    assert "until it expires" in told("agent.W011", STORE=without("confirm_tokens"))
    assert told("agent.W011") == ""


def test_e028_knows_a_store_that_keeps_no_personal_agents() -> None:
    forgetful = type("Forgetful", (OrmStore,), {"personal_agent": None, "personal_agent_connections": None})
    both = told("agent.E028", STORE=forgetful, PERSONAL_AGENT=True)
    assert "personal_agent and personal_agent_connections" in both
    assert told("agent.E028", STORE=forgetful) == ""
    for store in ("agent.store.OrmStore", "agent.testing.InMemoryStore"):
        assert told("agent.E028", STORE=store, PERSONAL_AGENT=True) == ""


def test_w012_says_that_keys_are_ignored() -> None:
    assert "Idempotency-Key" in told("agent.W012", STORE=without("idempotency"))


@override_settings(ASGI_APPLICATION=None)
def test_w013_says_that_turns_live_in_wsgi_processes() -> None:
    assert "WSGI" in told("agent.W013")


BARE = "from agent.routing import websocket_urlpatterns\napplication = URLRouter(websocket_urlpatterns)\n"
WRAPPED = (
    "application = AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(agent.routing.websocket_urlpatterns)))"
)


@pytest.mark.parametrize(
    ("source", "resolver", "words"),
    [
        (BARE, "DjangoUserResolver", ["origin", "nobody"]),
        (BARE, "AnonymousCookieResolver", ["origin"]),
        (f"{BARE}application = OriginValidator(application, [])", "DjangoUserResolver", ["nobody"]),
        (WRAPPED, "DjangoUserResolver", []),
        ("from agent.routing import websocket_application as application", "DjangoUserResolver", []),
        ("not python", "DjangoUserResolver", []),
    ],
)
def test_w015_names_sockets_that_any_page_may_open_or_that_know_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, resolver: str, words: list[str]
) -> None:
    (tmp_path / "served_somewhere.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with override_settings(ASGI_APPLICATION="served_somewhere.application"):
        said = told("agent.W015", ACTOR_RESOLVER=f"agent.actors.{resolver}")
    assert [word for word in ("origin", "nobody") if word in said] == words
    with override_settings(ASGI_APPLICATION="nowhere.at.all"):
        assert told("agent.W015") == ""


@pytest.mark.parametrize(
    ("number", "settings"),
    [
        ("agent.W020", {"ACTOR_RESOLVER": "agent.actors.AnonymousCookieResolver"}),
        ("agent.W021", {"ACTOR_RESOLVER": "agent.actors.HeaderActorResolver", "TRUSTED_GATEWAY": True}),
        ("agent.W022", {"EXPOSE_ERRORS": True}),
    ],
)
def test_w020_to_w022_speak_before_a_deployment_alone(number: str, settings: dict[str, Any]) -> None:
    assert told(number, **settings) == ""
    assert told(number, deploy=True, **settings) != ""


def test_w023_names_an_action_that_asks_nobody(registry: Registry) -> None:
    vault(requires_approval=False)
    assert told("agent.W023") == ""
    assert "'vault'" in told("agent.W023", deploy=True)


@pytest.mark.parametrize("seconds", [0, -1, 0.0001, 10**12, float("nan"), float("inf"), "1h", True])
@pytest.mark.parametrize("key", ["APPROVAL_TTL_SECONDS", "ASK_TTL_SECONDS"])
def test_e010_a_time_for_deciding_that_never_ends_is_refused(key: str, seconds: Any) -> None:
    assert f"AGENT['{key}']: must be a number of seconds from 0.001" in told("agent.E010", **{key: seconds})


def test_e010_an_approval_policy_can_be_asked_both_of_its_questions() -> None:
    assert told("agent.E010", APPROVAL_POLICY="agent.approvals.DefaultApprovalPolicy") == ""
    text = told("agent.E010", APPROVAL_POLICY=object())
    assert "`requirement_for`" in text
    assert "`can_decide`" in text
