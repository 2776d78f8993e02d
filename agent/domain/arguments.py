"""The arguments of a call as a model wrote them: JSON that every later step can hold, or else the text itself."""

from __future__ import annotations

import json

from agent.domain.canonical import canonical_json
from agent.domain.model_calls import Json
from agent.errors import Invalid

RAW = "__raw"  # stands alone for arguments that are not JSON
FENCE = "```"
DEEPEST = 100  # levels; what is stored is read again on stacks of any depth


def read_arguments(text: str) -> Json:
    """The object that the text is, or `{"__raw": text}`: no JSON, not an object, or one that cannot be kept."""
    try:
        value = json.loads(text, parse_constant=_refuse, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) and _is_kept(value) else {RAW: text}


def kept_arguments(value: Json) -> Json:
    """Arguments that somebody else has read; `{"__raw": ...}` where JSON cannot say them."""
    return value if _is_kept(value) else {RAW: _in_words(value)}


def without_fence(text: str) -> str:
    """A JSON text without the code fence that models like to put around it."""
    stripped = text.strip()
    if not (stripped.startswith(FENCE) and stripped.endswith(FENCE) and len(stripped) >= 2 * len(FENCE)):
        return stripped
    inner = stripped[len(FENCE) : -len(FENCE)]
    return inner.removeprefix("json").strip()


def raw_text(value: Json) -> str | None:
    """The text of arguments that are not JSON; None for all others."""
    text = value[RAW] if isinstance(value, dict) and set(value) == {RAW} else None
    return text if isinstance(text, str) else None


def _is_kept(value: Json) -> bool:
    if not _is_flat(value, DEEPEST):
        return False
    try:
        canonical_json(value)
    except Invalid:
        return False
    return True


def _is_flat(value: Json, levels: int) -> bool:
    if not isinstance(value, (dict, list, tuple)):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_flat(each, levels - 1) for each in inner)


def _in_words(value: Json) -> str:
    try:
        return repr(value)
    except (ValueError, RecursionError):  # an endless number, or nested too deep
        return f"({type(value).__name__})"


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """An object whose keys stand once: which of two was meant, nobody can say."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found
