"""What each setting may be: a sentence for the developer, a test, and how the value is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agent.domain import quota
from agent.domain.approvals import LONGEST, MILLISECOND
from agent.domain.media import DEFAULT_TYPES, KNOWN_TYPES
from agent.domain.vocabulary import PRESETS, DecisionVocabulary
from agent.domain.windows import History


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueModel:
    """A model of `AGENT["MODELS"]` that people may choose; `provider` None = the default provider."""

    id: str
    label: str
    provider: str | None = None
    default: bool = False
    roles: tuple[str, ...] = ()
    permission: str | None = None
    available: bool = True
    agents: tuple[str, ...] | None = None  # None = every agent


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentSettings:
    """`AGENT["ATTACHMENTS"]`: where uploads wait, and what is taken."""

    store: object = "agent.store.staging.DjangoStagingStore"
    max_bytes: int = 20 * 1024 * 1024
    types: tuple[str, ...] = DEFAULT_TYPES
    url_seconds: int = 3600


HARD_LIMIT = 32 * 1024 * 1024  # of one upload, whatever a site allows


def _as_it_is(value: Any) -> Any:  # noqa: ANN401 - a setting is any value
    return value


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of value."""

    allowed: str
    fits: Callable[[Any], bool]
    parsed: Callable[[Any], Any] = _as_it_is


def optional(rule: Rule) -> Rule:
    return Rule(
        f"{rule.allowed}, or None",
        lambda value: value is None or rule.fits(value),
        lambda value: None if value is None else rule.parsed(value),
    )


def whole(least: int) -> Rule:
    return Rule(f"a whole number from {least} up", lambda value: type(value) is int and value >= least)


def choice(*words: str) -> Rule:
    return Rule(" or ".join(repr(word) for word in words), lambda value: isinstance(value, str) and value in words)


def named(*words: str) -> Rule:
    """One of our names, or the dotted path of the host's own."""
    shown = ", ".join(repr(word) for word in words)
    return Rule(f"{shown} or a dotted path", lambda value: _is_text(value) and (value in words or "." in value))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_text_list(value: object) -> bool:
    return isinstance(value, (list, tuple, set, frozenset)) and all(_is_text(each) for each in value)


def _is_vocabulary(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(
        each in PRESETS if isinstance(each, str) else isinstance(each, DecisionVocabulary) for each in value
    )


def _is_seconds(value: object) -> bool:
    return type(value) in {int, float} and 0 < value < math.inf  # type: ignore[operator]


def _is_ttl(value: object) -> bool:
    return _is_seconds(value) and MILLISECOND.total_seconds() <= value <= LONGEST.total_seconds()  # type: ignore[operator]


def _is_zone(value: object) -> bool:
    try:
        return isinstance(value, ZoneInfo) or (_is_text(value) and bool(ZoneInfo(str(value)).key))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False


def _is_mapping_of(value: object, allowed: set[str]) -> bool:
    return isinstance(value, Mapping) and set(value) <= allowed


def _is_path(value: object) -> bool:
    return _is_text(value) and "." in str(value) if isinstance(value, str) else value is not None


def _is_provider(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) for key in value) and _is_path(value.get("class"))
    return _is_path(value)


def _is_catalogue(value: object) -> bool:
    if not isinstance(value, (list, tuple)) or not all(_is_model(each) for each in value):
        return False
    ids = [each["id"] for each in value]
    return len(set(ids)) == len(ids) and sum(bool(each.get("default")) for each in value) <= 1


_MODEL_RULES: Mapping[str, Callable[[object], bool]] = {
    "id": _is_text,
    "label": _is_text,
    "provider": _is_text,
    "default": lambda value: isinstance(value, bool),
    "roles": _is_text_list,
    "permission": _is_text,
    "available": lambda value: isinstance(value, bool),
    "agents": _is_text_list,
}


def _is_model(value: object) -> bool:
    if not isinstance(value, Mapping) or not _is_text(value.get("id")):
        return False
    return all(key in _MODEL_RULES and _MODEL_RULES[key](each) for key, each in value.items())


_ATTACHMENT_RULES: Mapping[str, Callable[[Any], bool]] = {
    "STORE": _is_path,
    "MAX_BYTES": lambda value: type(value) is int and 1 <= value <= HARD_LIMIT,
    "TYPES": lambda value: _is_text_list(value) and bool(value) and set(value) <= KNOWN_TYPES,
    "URL_SECONDS": lambda value: type(value) is int and value >= 1,
}


def _are_attachments(value: object) -> bool:
    return _is_mapping_of(value, set(_ATTACHMENT_RULES)) and all(
        _ATTACHMENT_RULES[key](each)
        for key, each in value.items()  # type: ignore[attr-defined]
    )


def _attachments(value: Mapping[str, Any]) -> AttachmentSettings:
    given: dict[str, Any] = {key.lower(): tuple(each) if key == "TYPES" else each for key, each in value.items()}
    return AttachmentSettings(**given)


def _model(value: Mapping[str, Any]) -> CatalogueModel:
    given: dict[str, Any] = {"label": value["id"], **value}
    given |= {key: tuple(given[key]) for key in ("roles", "agents") if key in given}
    return CatalogueModel(**given)


def _models(value: Sequence[Mapping[str, Any]]) -> tuple[CatalogueModel, ...]:
    return tuple(_model(each) for each in value)


_BOUNDS = {each.name for each in dataclass_fields(History)}

TEXT = Rule("text", _is_text)
TEXTS = Rule("a list of texts", _is_text_list, tuple)
LIST = Rule("a list", lambda value: isinstance(value, (list, tuple)), tuple)
FLAG = Rule("True or False", lambda value: isinstance(value, bool))
SECONDS = Rule("a number of seconds above 0", _is_seconds, float)
TTL = Rule("a number of seconds from 0.001 to a hundred years", _is_ttl, float)
MAPPING = Rule("a dict", lambda value: isinstance(value, Mapping), MappingProxyType)
TEXT_MAPPING = Rule(
    "a dict of texts",
    lambda value: isinstance(value, Mapping) and _is_text_list([*value, *value.values()]),
    MappingProxyType,
)
VOCABULARY = Rule(
    f"a list of {', '.join(map(repr, PRESETS))} or of DecisionVocabulary",
    _is_vocabulary,
    tuple,
)
PATH = Rule("a dotted path, or the thing itself", _is_path)
ZONE = Rule("the name of a time zone", _is_zone, lambda value: ZoneInfo(str(value)))
PROVIDERS = Rule(
    'a dict of name to a dotted path, {"class": path, **options} or an object',
    lambda value: isinstance(value, Mapping) and _is_text_list(list(value)) and all(map(_is_provider, value.values())),
    MappingProxyType,
)
MODELS = Rule(
    "a list of {id, provider, label, default?, roles?, permission?, available?, agents?} with each id once and at most "
    "one default",
    _is_catalogue,
    _models,
)
# A bound of a wrong kind is the business of agent.E030, which knows agents' bounds too.
HISTORY = Rule(
    f"a History, or a dict of {', '.join(sorted(_BOUNDS))}",
    lambda value: isinstance(value, History) or _is_mapping_of(value, _BOUNDS),
    lambda value: value if isinstance(value, History) else History(**value),
)
QUOTA = Rule(
    "a dict of day, month, tenant and by_role, each limit {tokens?, usd?, warn_at?, reserve?} with tokens or usd",
    lambda value: not any(quota.problems(value)),
    MappingProxyType,
)
ATTACHMENTS = Rule(
    f"a dict of STORE, MAX_BYTES (1 to {HARD_LIMIT}), TYPES (among {', '.join(sorted(KNOWN_TYPES))}), URL_SECONDS",
    _are_attachments,
    _attachments,
)
