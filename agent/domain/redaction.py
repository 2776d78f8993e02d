"""Secrets out of text that is kept or logged: vendors and drivers repeat the keys and addresses they were given."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable

HIDDEN = "[hidden]"
SHORTEST_SECRET = 6

_KEPT_HEAD = re.compile(
    r"""(?ix)
    ( ://[^\s/:@]*: (?=[^\s/@]*@)                                        # scheme://user:  of a URL with a password
    | \b (?:proxy-)? authorization ["']? \s* [:=] \s* ["']? (?:(?:bearer|basic|token)\s+)?
    | \b (?:bearer|basic) \s+ (?=[a-z0-9._~+/=-]{8})
    | \b [a-z0-9_-]* (?:api[-_\ ]?key|secret|password|passwd|access[-_]?token|refresh[-_]?token)
      ["']? (?:\s+provided)? \s* [:=] \s* ["']?
    )
    (?!\[hidden\]) [^\s"',;)}\]@]+
    """
)
_WHOLE = re.compile(
    r"""(?x)
    \b(?: (?:sk|pk|rk|gsk|xai|hf|r8|key) [-_][A-Za-z0-9_*.-]{6,}         # keys of model vendors
      | AKIA[0-9A-Z]{12,} | AIza[0-9A-Za-z_-]{20,}
      | eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*          # a JSON web token
    )"""
)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The whole text with keys, credentials and passwords in URLs hidden, and the given secrets wherever they stand."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, HIDDEN)
    return _WHOLE.sub(HIDDEN, _KEPT_HEAD.sub(rf"\1{HIDDEN}", text))


def redacted_trace(error: BaseException) -> str:
    """The traceback of an error as a log may keep it."""
    return redact("".join(traceback.format_exception(error)))
