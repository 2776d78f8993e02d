"""The one reader of `settings.AGENT`: typed names, defaults, and dotted paths resolved once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from agent import setting_rules as rules
from agent.domain.vocabulary import DecisionVocabulary
from agent.domain.windows import History
from agent.setting_rules import AttachmentSettings, CatalogueModel, Rule
from agent.sink_options import option_problems

__all__ = ["AgentSettings", "CatalogueModel", "agent_settings", "import_path", "resolved", "setting_problems"]


@dataclass(frozen=True, kw_only=True, eq=False)
class AgentSettings:
    """`AGENT` as the code reads it; what is named by a path is imported at its first use, and kept."""

    paths: Mapping[str, object] = field(repr=False)  # the keys of PATHS, as written

    runner: str = "inline"
    sink: str = "database"
    sink_options: Mapping[str, Any] = field(default_factory=dict)
    providers: Mapping[str, Any] = field(default_factory=dict, repr=False)
    default_provider: str | None = None
    models: tuple[CatalogueModel, ...] = ()
    model_aliases: Mapping[str, str] = field(default_factory=dict)
    default_agent: str | None = None
    max_steps: int = 8
    model_retries: int = 3
    tool_timeout_seconds: float | None = None
    history: History | None = None
    trusted_gateway: bool = False
    tool_default_roles: tuple[str, ...] = ()
    tool_empty_roles: str = "open"
    action_approval_mode: str = "blocking"
    approval_ttl_seconds: float | None = None
    ask_ttl_seconds: float | None = None
    decision_vocabulary: tuple[str | DecisionVocabulary, ...] = ("en",)
    confirm_token_secret: str = field(repr=False)  # default: made of SECRET_KEY
    confirm_token_seconds: int = 900
    run_lease_seconds: int = 60
    run_max_recoveries: int = 5
    journal_days: int = 30
    proposal_lease_seconds: int = 30
    proposal_poll_seconds: int = 1
    proposal_concurrency: int = 1
    embedded_worker: bool = True
    quota: Mapping[str, Any] | None = None
    delegation_max_depth: int = 5
    delegation_max_appearances: int = 1
    attachments: AttachmentSettings | None = None
    report_time_zone: ZoneInfo  # default: TIME_ZONE
    export_max_rows: int = 100_000
    expose_errors: bool  # default: DEBUG
    serve_schema: bool = False
    personal_agent: bool = False

    @cached_property
    def store(self) -> object:
        """The store class, or an object that keeps the promise."""
        named: object = resolved("STORE", self.paths["STORE"])
        return named

    @cached_property
    def permission_classes(self) -> tuple[Any, ...]:
        named = self.paths["PERMISSION_CLASSES"]
        return tuple(resolved("PERMISSION_CLASSES", each) for each in _listed(named))

    @cached_property
    def history_policy(self) -> object | None:
        return _made("HISTORY_POLICY", self.paths)

    @cached_property
    def actor_resolver(self) -> object:
        return _made("ACTOR_RESOLVER", self.paths)

    @cached_property
    def background_actor_resolver(self) -> object:
        return _made("BACKGROUND_ACTOR_RESOLVER", self.paths)

    @cached_property
    def approval_policy(self) -> object:
        return _made("APPROVAL_POLICY", self.paths)

    @cached_property
    def quota_policy(self) -> object:
        return _made("QUOTA_POLICY", self.paths)

    @cached_property
    def staging_store(self) -> object | None:
        return _made("ATTACHMENTS", {"ATTACHMENTS": self.attachments.store}) if self.attachments else None

    @cached_property
    def actor_directory(self) -> object | None:
        return _made("ACTOR_DIRECTORY", self.paths)

    @cached_property
    def console_scope(self) -> object | None:
        return _made("CONSOLE_SCOPE", self.paths)


PATHS: Mapping[str, tuple[object, Rule]] = {
    "STORE": ("agent.store.OrmStore", rules.PATH),
    "HISTORY_POLICY": (None, rules.optional(rules.PATH)),
    "ACTOR_RESOLVER": ("agent.actors.DjangoUserResolver", rules.PATH),
    "BACKGROUND_ACTOR_RESOLVER": ("agent.actors.DjangoBackgroundResolver", rules.PATH),
    "PERMISSION_CLASSES": ((), rules.LIST),
    "APPROVAL_POLICY": ("agent.approvals.DefaultApprovalPolicy", rules.PATH),
    "QUOTA_POLICY": ("governance.quota.LedgerQuota", rules.PATH),
    "ACTOR_DIRECTORY": (None, rules.optional(rules.PATH)),
    "CONSOLE_SCOPE": (None, rules.optional(rules.PATH)),
}
VALUES: Mapping[str, Rule] = {
    "RUNNER": rules.named("inline", "celery"),
    "SINK": rules.named("database", "memory", "redis"),
    "SINK_OPTIONS": rules.MAPPING,
    "PROVIDERS": rules.PROVIDERS,
    "DEFAULT_PROVIDER": rules.optional(rules.TEXT),
    "MODELS": rules.MODELS,
    "MODEL_ALIASES": rules.TEXT_MAPPING,
    "DEFAULT_AGENT": rules.optional(rules.TEXT),
    "MAX_STEPS": rules.whole(1),
    "MODEL_RETRIES": rules.whole(0),
    "TOOL_TIMEOUT_SECONDS": rules.optional(rules.SECONDS),
    "HISTORY": rules.optional(rules.HISTORY),
    "TRUSTED_GATEWAY": rules.FLAG,
    "TOOL_DEFAULT_ROLES": rules.TEXTS,
    "TOOL_EMPTY_ROLES": rules.choice("open", "deny"),
    "ACTION_APPROVAL_MODE": rules.choice("blocking", "independent"),
    "APPROVAL_TTL_SECONDS": rules.optional(rules.TTL),
    "ASK_TTL_SECONDS": rules.optional(rules.TTL),
    "DECISION_VOCABULARY": rules.VOCABULARY,
    "CONFIRM_TOKEN_SECRET": rules.TEXT,
    "CONFIRM_TOKEN_SECONDS": rules.whole(1),
    "RUN_LEASE_SECONDS": rules.whole(1),
    "RUN_MAX_RECOVERIES": rules.whole(1),
    "JOURNAL_DAYS": rules.whole(1),
    "PROPOSAL_LEASE_SECONDS": rules.whole(1),
    "PROPOSAL_POLL_SECONDS": rules.whole(1),
    "PROPOSAL_CONCURRENCY": rules.whole(1),
    "EMBEDDED_WORKER": rules.FLAG,
    "QUOTA": rules.optional(rules.QUOTA),
    "DELEGATION_MAX_DEPTH": rules.whole(1),
    "DELEGATION_MAX_APPEARANCES": rules.whole(1),
    "ATTACHMENTS": rules.optional(rules.ATTACHMENTS),
    "REPORT_TIME_ZONE": rules.ZONE,
    "EXPORT_MAX_ROWS": rules.whole(1),
    "EXPOSE_ERRORS": rules.FLAG,
    "SERVE_SCHEMA": rules.FLAG,
    "PERSONAL_AGENT": rules.FLAG,
}
FOLLOWED = {"AGENT", "DEBUG", "TIME_ZONE", "SECRET_KEY"}

_current: AgentSettings | None = None


def agent_settings() -> AgentSettings:
    """The settings in force; `ImproperlyConfigured` names each key that is wrong and what it may be."""
    global _current
    if _current is None:
        raw = getattr(django_settings, "AGENT", {})
        problems = list(_problems(raw))
        if problems:
            raise ImproperlyConfigured("; ".join(problems))
        _current = _parsed(raw)
    return _current


def written_settings() -> dict[str, Any]:
    """`AGENT` as the host wrote it, for a test that changes some of it."""
    return dict(getattr(django_settings, "AGENT", {}))


def setting_problems() -> list[str]:
    """Everything that is wrong with `AGENT`, what does not import included: one sentence each."""
    raw = getattr(django_settings, "AGENT", {})
    return list(_problems(raw)) or [*_site_problems(), *_import_problems(raw)]


def _site_problems() -> Iterator[str]:
    if not django_settings.USE_TZ:
        yield "USE_TZ: must be True; instants without a zone cannot be compared with a lease."


def import_path(path: str) -> Any:  # noqa: ANN401 - whatever is named
    """What a dotted path names; `ImproperlyConfigured` when it does not import."""
    try:
        return import_string(path)
    except (ImportError, ValueError) as error:
        raise ImproperlyConfigured(f"{path!r} does not import ({error}).") from error


def resolved(key: str, named: object) -> Any:  # noqa: ANN401 - whatever is named
    """What a setting names by path; anything but text is the thing itself."""
    if not isinstance(named, str):
        return named
    try:
        return import_path(named)
    except ImproperlyConfigured as error:
        raise ImproperlyConfigured(f"AGENT[{key!r}]: {error}") from error


def _made(key: str, paths: Mapping[str, object]) -> object:
    found: object = resolved(key, paths[key])
    return found() if isinstance(found, type) else found


def _problems(raw: object) -> Iterator[str]:
    if not isinstance(raw, Mapping):
        yield "AGENT: must be a dict"
        return
    for key, value in raw.items():
        if key not in VALUES and key not in PATHS:
            yield f"AGENT[{key!r}]: there is no such setting; there are {', '.join(sorted({*VALUES, *PATHS}))}."
            continue
        rule = VALUES[key] if key in VALUES else PATHS[key][1]
        if not rule.fits(value):
            yield f"AGENT[{key!r}]: must be {rule.allowed}, not {_shown(key, value)}."
    if isinstance(options := raw.get("SINK_OPTIONS", {}), Mapping):
        yield from option_problems(raw.get("SINK", "database"), options)


def _shown(key: str, value: object) -> str:
    return "this" if "SECRET" in key or key == "PROVIDERS" else f"{value!r:.80}"


def _import_problems(raw: Mapping[str, object]) -> Iterator[str]:
    """Only what the host wrote: a default is used, and so imported, where it is needed."""
    current = agent_settings()
    written: list[tuple[str, object]] = [(key, raw[key]) for key in PATHS if key in raw]
    written += [(key, raw[key]) for key in ("RUNNER", "SINK") if "." in str(raw.get(key, ""))]
    written += [(f"PROVIDERS.{name}", _class_of(entry)) for name, entry in current.providers.items()]
    written += [("ATTACHMENTS.STORE", current.attachments.store if current.attachments else None)]
    for key, named in written:
        for each in _listed(named):
            try:
                resolved(key, each)
            except ImproperlyConfigured as error:
                yield str(error)


def _class_of(entry: object) -> object:
    return entry["class"] if isinstance(entry, Mapping) else entry


def _listed(named: object) -> list[object]:
    return list(named) if isinstance(named, (list, tuple)) else [named]


def _parsed(raw: Mapping[str, object]) -> AgentSettings:
    given: dict[str, Any] = {
        "expose_errors": bool(django_settings.DEBUG),
        "report_time_zone": ZoneInfo(django_settings.TIME_ZONE),
        "confirm_token_secret": hashlib.sha256(
            f"agent.confirm-token:{django_settings.SECRET_KEY}".encode()
        ).hexdigest(),
    }
    given |= {key.lower(): VALUES[key].parsed(value) for key, value in raw.items() if key in VALUES}
    paths = {key: raw.get(key, default) for key, (default, _) in PATHS.items()}
    return AgentSettings(paths=paths, **given)


def _forget(*, setting: str, **_: object) -> None:
    global _current
    if setting in FOLLOWED:
        _current = None


setting_changed.connect(_forget, dispatch_uid="agent.conf")
