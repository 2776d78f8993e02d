"""Confirm tokens: proof that the preview of exactly this call was seen, by whom, and until when (spec 07 §5). Pure."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from agent.domain.canonical import canonical_json
from agent.domain.model_calls import Json

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
LONGEST = 128  # characters of a token; more is none


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a token stands for: this tool with these arguments, for this actor."""

    tool: str
    actor_ref: str
    tenant_ref: str | None
    arguments: Json  # without the fields of the gate

    def token(self, secret: str, expires_at_ms: int) -> str:
        """`<expiry base36>.<HMAC-SHA256>`."""
        signed = [self.tool, self.actor_ref, self.tenant_ref, expires_at_ms, self.arguments]
        mac = hmac.new(secret.encode(), canonical_json(signed).encode(), hashlib.sha256)
        return f"{_base36(expires_at_ms)}.{mac.hexdigest()}"

    def expiry(self, secret: str, token: str, now_ms: int) -> int | None:
        """Until when the token holds; None when it is over, or not this claim's."""
        written, _, _ = token.partition(".")
        if len(token) > LONGEST or not written.isascii() or not written.isalnum():
            return None
        expires_at_ms = int(written, 36)
        if expires_at_ms <= now_ms or not hmac.compare_digest(self.token(secret, expires_at_ms), token):
            return None
        return expires_at_ms


def hash_of(token: str) -> str:
    """What is kept of a token that was used."""
    return hashlib.sha256(token.encode()).hexdigest()


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, len(DIGITS))
        digits = DIGITS[digit] + digits
    return digits or "0"
