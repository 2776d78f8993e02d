"""What `manage.py check` says about an installation before a turn runs into it (spec 10 §7)."""

from __future__ import annotations

import ast
import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import celery
from django.apps import AppConfig
from django.conf import settings as django_settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.exceptions import ImproperlyConfigured
from django.db import connections, router

from agent.actors import AnonymousCookieResolver, DjangoUserResolver, HeaderActorResolver
from agent.conf import AgentSettings, agent_settings, setting_problems
from agent.domain.history import bound_problems
from agent.models import Thread
from agent.registry import default_provider_name, provider_named, registry, toolless_problems
from agent.store import OrmStore
from agent.store.base import CAPABILITIES, REQUIRED
from agent.store.companions import PERSONAL_COMPANIONS, remembers_tokens

Apps = Sequence[AppConfig] | None
Check = Callable[[AgentSettings], Iterator[CheckMessage]]
Registered = Callable[..., list[CheckMessage]]

BARE_SOCKETS = frozenset({"websocket_urlpatterns", "AgentConsumer"})
KNOWING = ("AuthMiddleware", "SessionMiddleware")
HARMLESS_MODES = {"IMMEDIATE", "EXCLUSIVE"}


def _checked(*tags: str, deploy: bool = False) -> Callable[[Check], Registered]:
    """Register a check that is asked only when the settings can be read: agent.E010 speaks for all until then."""

    def decorate(check: Check) -> Registered:
        def run(app_configs: Apps = None, **_: object) -> list[CheckMessage]:
            return [] if setting_problems() else list(check(agent_settings()))

        run.__name__, run.__doc__ = check.__name__, check.__doc__
        registered: Registered = register(*tags, deploy=deploy)(run)
        return registered

    return decorate


@register(Tags.compatibility)
def check_settings(app_configs: Apps = None, **_: object) -> list[CheckMessage]:
    """E010: a key that does not exist, a value of a wrong kind, a path that does not import, a provider unknown."""
    problems = setting_problems() or list(_provider_name_problems(agent_settings()))
    return [Error(text, id="agent.E010") for text in problems]


def _provider_name_problems(settings: AgentSettings) -> Iterator[str]:
    if registry.agents() and not settings.providers:
        yield "AGENT['PROVIDERS']: agents are declared, and there is no model provider that they could ask."
    if settings.providers:
        try:
            name = default_provider_name(settings)
        except ImproperlyConfigured as error:
            yield str(error)
        else:
            if name not in settings.providers:
                yield f'AGENT["DEFAULT_PROVIDER"]: PROVIDERS has no {name!r}.'
    for entry in settings.models:
        if entry.provider is not None and entry.provider not in settings.providers:
            yield f'AGENT["MODELS"]: PROVIDERS has no {entry.provider!r}, which {entry.id!r} names.'


@_checked(Tags.compatibility)
def check_store(settings: AgentSettings) -> Iterator[CheckMessage]:
    """E020, E021, E022, E024, E028, W011, W012: what the store promises, against what is asked of it."""
    store: Any = settings.store
    capabilities = frozenset(getattr(store, "capabilities", ()))
    for name in sorted(capabilities & CAPABILITIES.keys()):
        missing = sorted(member for member in _members(CAPABILITIES[name]) if not hasattr(store, member))
        if missing:
            yield Error(f"The store declares {name!r} and lacks {', '.join(missing)}.", id="agent.E020")
    for name in sorted(REQUIRED - capabilities):
        yield Error(f"The store lacks the capability {name!r}, which every store must have.", id="agent.E021")
    if settings.runner != "inline" and not {"runs", "journal"} <= capabilities:
        yield Error("Without the capabilities runs and journal the runner must be 'inline'.", id="agent.E022")
    if settings.sink == "database" and "frames" not in capabilities:
        yield Error("The sink 'database' needs a store with the capability frames.", id="agent.E024")
    if not remembers_tokens(store):
        yield checks.Warning("A confirm token may be used again until it expires.", id="agent.W011")
    lacking = [name for name in PERSONAL_COMPANIONS if settings.personal_agent and getattr(store, name, None) is None]
    if lacking:
        yield Error(f"PERSONAL_AGENT needs a store that names its {' and '.join(lacking)}.", id="agent.E028")
    if "idempotency" not in capabilities:
        yield checks.Warning("The store ignores the header Idempotency-Key.", id="agent.W012")


def _members(protocol: type) -> set[str]:
    return {name for name in (*vars(protocol), *vars(protocol).get("__annotations__", {})) if not name.startswith("_")}


PROPOSAL_CAPABILITIES = {"proposals", "proposal_replacement", "proposal_worker", "proposal_outcomes", "queue"}


@_checked(Tags.compatibility)
def check_proposals(settings: AgentSettings) -> Iterator[CheckMessage]:
    """E023, E025, E026: what proposals need, where something is declared that makes them."""
    if settings.proposal_poll_seconds >= settings.proposal_lease_seconds / 3:
        yield Error("PROPOSAL_POLL_SECONDS must be below a third of PROPOSAL_LEASE_SECONDS.", id="agent.E025")
    if not registry.makes_proposals(settings.action_approval_mode):
        return
    missing = sorted(PROPOSAL_CAPABILITIES - frozenset(getattr(settings.store, "capabilities", ())))
    if missing:
        yield Error(f"approval_mode 'independent' needs a store with {', '.join(missing)}.", id="agent.E023")
    elif getattr(settings.store, "proposal_admission_supported", False) is not True:
        yield Error("The store cannot commit a message and a delivery together.", id="agent.E023")
    if not callable(getattr(settings.background_actor_resolver, "resolve", None)):
        yield Error('AGENT["BACKGROUND_ACTOR_RESOLVER"]: it has a method `resolve`.', id="agent.E026")


@_checked(Tags.compatibility)
def check_history(settings: AgentSettings) -> Iterator[CheckMessage]:
    """E030: bounds of a history window that bound nothing."""
    declared: list[tuple[str, object]] = [
        ('AGENT["HISTORY"]', settings.history),
        ('AGENT["HISTORY_POLICY"]', settings.history_policy),
        *((f"Agent {each.name!r}", each.history) for each in registry.agents()),
    ]
    for where, history in declared:
        for text in bound_problems(history):
            yield Error(f"{where}: {text}.", id="agent.E030")


@_checked(Tags.security)
def check_identity(settings: AgentSettings) -> Iterator[CheckMessage]:
    """E031: headers are believed, and nobody says that a gateway sets them."""
    if isinstance(settings.actor_resolver, HeaderActorResolver) and not settings.trusted_gateway:
        yield Error(
            "HeaderActorResolver believes whoever sends its headers.",
            hint='Behind a gateway that sets and strips them, set AGENT["TRUSTED_GATEWAY"] = True.',
            id="agent.E031",
        )


@_checked(Tags.compatibility)
def check_reach(settings: AgentSettings) -> Iterator[CheckMessage]:
    """E032, W014: a broker or a vendor's library that is not there, a sink that workers do not share."""
    if settings.runner == "celery":
        yield from _check_workers(settings)
    elif settings.sink == "memory" and _web_processes() > 1:
        yield checks.Warning(
            "The sink 'memory' is of one process, and WEB_CONCURRENCY asks for more.",
            hint='AGENT["SINK"] = "database"',
            id="agent.W014",
        )
    if settings.sink == "redis" and find_spec("redis") is None:
        yield Error("The sink 'redis' needs its client.", hint="pip install 'django-steward[redis]'", id="agent.E032")
    for name in settings.providers:
        try:
            provider = provider_named(name)
            if not callable(getattr(provider, "stream", None)):
                yield Error(f'AGENT["PROVIDERS"][{name!r}]: a provider has a method `stream`.', id="agent.E010")
        except ImportError as error:
            yield Error(f'AGENT["PROVIDERS"][{name!r}]: {error}', id="agent.E032")
        except Exception as error:
            yield Error(f'AGENT["PROVIDERS"][{name!r}] cannot be made: {error}', id="agent.E010")


def _web_processes() -> int:
    """How many processes the servers that read this variable will start."""
    asked = os.environ.get("WEB_CONCURRENCY", "")
    return int(asked) if asked.isdecimal() else 1


def _check_workers(settings: AgentSettings) -> Iterator[CheckMessage]:
    if not celery.current_app.conf.broker_write_url:
        yield Error(
            "AGENT['RUNNER'] is 'celery', and the current Celery application has no broker.",
            hint="Set broker_url, and import your Celery application in the package of your settings.",
            id="agent.E032",
        )
    if settings.sink == "memory":
        yield checks.Warning(
            "The sink 'memory' is of one process: what a Celery worker says is not heard where people are served.",
            hint='AGENT["SINK"] = "database"',
            id="agent.W014",
        )


@_checked(Tags.compatibility)
def check_declarations(settings: AgentSettings) -> Iterator[CheckMessage]:
    """E033, E034: names taken or unknown, tools without a schema or a provider, four eyes with one pair of them."""
    for text in (*registry.problems(), *toolless_problems(settings)):
        yield Error(text, id="agent.E033")
    names = {agent.name for agent in registry.agents()}
    if settings.default_agent is not None and settings.default_agent not in names:
        yield Error(f'AGENT["DEFAULT_AGENT"]: unknown agent {settings.default_agent!r}.', id="agent.E033")
    for entry in settings.models:
        for name in sorted({*(entry.agents or ())} - names):
            yield Error(f'AGENT["MODELS"]: unknown agent {name!r}, which {entry.id!r} names.', id="agent.E033")
    for tool in registry.tools():
        if tool.four_eyes and tool.approver == "requester":
            yield Error(
                f"Tool {tool.name!r} ({tool.origin}): with four_eyes the requester may not be the approver.",
                hint="Name a role or a permission as its approver.",
                id="agent.E034",
            )


@_checked(Tags.compatibility)
def check_approvals(settings: AgentSettings) -> Iterator[CheckMessage]:
    """E010: a policy that cannot be asked."""
    for name in ("requirement_for", "can_decide"):
        if not callable(getattr(settings.approval_policy, name, None)):
            yield Error(f'AGENT["APPROVAL_POLICY"]: a policy has a method `{name}`.', id="agent.E010")


@_checked(Tags.compatibility)
def check_sqlite(settings: AgentSettings) -> Iterator[CheckMessage]:
    """W010: a transaction that reads before it writes fails under load with "database is locked"."""
    if not (isinstance(settings.store, type) and issubclass(settings.store, OrmStore)):
        return
    connection = connections[router.db_for_write(Thread)]
    mode = str(connection.settings_dict.get("OPTIONS", {}).get("transaction_mode") or "DEFERRED")
    if connection.vendor == "sqlite" and mode.upper() not in HARMLESS_MODES:
        yield checks.Warning(
            f"SQLite runs in transaction mode {mode}: turns at the same time fail with 'database is locked'.",
            hint=f'DATABASES[{connection.alias!r}]["OPTIONS"]["transaction_mode"] = "IMMEDIATE"',
            id="agent.W010",
        )


@_checked(Tags.compatibility)
def check_process(settings: AgentSettings) -> Iterator[CheckMessage]:
    """W013: turns that live in whichever process took the message."""
    if settings.runner == "inline" and not getattr(django_settings, "ASGI_APPLICATION", None):
        yield checks.Warning(
            "The runner 'inline' under WSGI drives turns in a thread of whichever process took the message.",
            hint="Set ASGI_APPLICATION and serve it.",
            id="agent.W013",
        )


@_checked(Tags.security)
def check_sockets(settings: AgentSettings) -> Iterator[CheckMessage]:
    """W015: sockets that a page of any site may open in its visitor's name, or whose visitor is never known."""
    names = _names_in(getattr(django_settings, "ASGI_APPLICATION", None) or "")
    if not names & BARE_SOCKETS:
        return
    if not any(name.endswith("OriginValidator") for name in names):
        yield checks.Warning(
            "Sockets of the agent are mounted without a look at their origin: any site's page may open them.",
            hint="Mount agent.routing.websocket_application, or wrap yours in AllowedHostsOriginValidator.",
            id="agent.W015",
        )
    by_user = isinstance(settings.actor_resolver, DjangoUserResolver)
    if by_user and not any(name.startswith(KNOWING) for name in names):
        yield checks.Warning(
            "Sockets of the agent are mounted without sessions: whoever opens one is nobody.",
            hint="Mount agent.routing.websocket_application, or wrap yours in SessionMiddlewareStack.",
            id="agent.W015",
        )


def _names_in(path: str) -> frozenset[str]:
    """The names that the module of the ASGI application uses. It is read, not imported: that would start it."""
    try:
        spec = importlib.util.find_spec(path.rpartition(".")[0])
        source = "" if spec is None or spec.origin is None else Path(spec.origin).read_text()
        nodes = list(ast.walk(ast.parse(source)))
    except (ImportError, ValueError, OSError, SyntaxError):
        return frozenset()
    found = {node.id for node in nodes if isinstance(node, ast.Name)}
    return frozenset(found | {node.attr for node in nodes if isinstance(node, ast.Attribute)})


@_checked(Tags.security, deploy=True)
def check_deployment(settings: AgentSettings) -> Iterator[CheckMessage]:
    """W020 to W023: what is lawful, and worth a thought before strangers come."""
    if isinstance(settings.actor_resolver, AnonymousCookieResolver):
        yield checks.Warning("Anybody may talk to the agents without signing in.", id="agent.W020")
    if isinstance(settings.actor_resolver, HeaderActorResolver):
        yield checks.Warning("Who acts is read from headers: only its gateway may reach this site.", id="agent.W021")
    if settings.expose_errors:
        yield checks.Warning("EXPOSE_ERRORS shows clients the raw text of errors.", id="agent.W022")
    for tool in registry.tools():
        if tool.kind == "action" and not tool.requires_approval:
            yield checks.Warning(
                f"Tool {tool.name!r} ({tool.origin}): nobody is asked before it acts.", id="agent.W023"
            )
