"""Secrets out of text that is kept or logged: a vendor's error or a driver's message may quote a key or a password."""

from __future__ import annotations

import re

HIDDEN = "[hidden]"

_USER_INFO = re.compile(r"(?P<before>\b[a-z][a-z0-9+.-]*://[^\s/@:'\"]*):[^\s/'\"]+@", re.IGNORECASE)
_BEARER = re.compile(r"(?P<before>\bbearer\s+)[A-Za-z0-9+/=._~-]{12,}", re.IGNORECASE)
_NAMED = re.compile(
    r"(?P<before>\b[\w-]*(?:api[_-]?key|secret|password|passwd|authorization|access[_-]?token|auth[_-]?token)[\w-]*"
    r"['\"]?\s*[:=]\s*['\"]?(?:(?:bearer|basic|token)\s+)?)[^\s'\",;&)}\]]+",
    re.IGNORECASE,
)
_VENDOR_KEY = re.compile(
    r"\b(?:sk|pk|rk|gsk|xox[abp]|ghp|github_pat)[-_][A-Za-z0-9_-]{8,}|\bAKIA[A-Z0-9]{12,}|\bAIza[\w-]{20,}"
)


def redact(text: str) -> str:
    """The text with keys, passwords and authorization values hidden."""
    text = _USER_INFO.sub(rf"\g<before>:{HIDDEN}@", text)
    for named in (_NAMED, _BEARER):
        text = named.sub(rf"\g<before>{HIDDEN}", text)
    return _VENDOR_KEY.sub(HIDDEN, text)
