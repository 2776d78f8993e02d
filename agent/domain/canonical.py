"""One JSON text a value: what is hashed, compared and kept as a snapshot."""

from __future__ import annotations

import hashlib
import json

from agent.errors import Invalid


def compact_json(value: object) -> str:
    """ASCII JSON without blanks, keys in their own order; `Invalid` for what JSON cannot say (NaN, Infinity, sets)."""
    try:
        return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"not JSON: {error}") from error


def canonical_json(value: object) -> str:
    """The same text for equal values, whatever their key order: sorted text keys, finite numbers, ASCII."""
    try:
        _refuse_other_keys(value)
        return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"), sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"not JSON: {error}") from error


def sha256_hex(value: object) -> str:
    """Lower-case hex of the SHA-256 of the value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def _refuse_other_keys(value: object) -> None:
    """`{1: a}` and `{"1": a}` are written alike and are not equal."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"keys must be text, not {type(key).__name__}")
            _refuse_other_keys(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _refuse_other_keys(item)
