"""Used confirm tokens in memory: capability `confirm_tokens`."""

from __future__ import annotations

from agent.testing.memory.state import State
from agent.testing.memory.unit import unit
from agent.testing.memory.values import HASH, NAME, REF, exact


class ConfirmTokens(State):
    @unit
    def claim_token(self, token_hash: str, actor_ref: str, tool: str, expires_at_ms: int) -> bool:
        exact("actor_ref", actor_ref, REF)
        exact("tool", tool, NAME)
        if exact("hash", token_hash, HASH) in self.tokens:
            return False
        self.tokens.put(token_hash, expires_at_ms)
        return True

    @unit
    def release_token(self, token_hash: str) -> None:
        if token_hash in self.tokens:
            self.tokens.drop(token_hash)

    @unit
    def purge_expired_tokens(self, now_ms: int) -> int:
        gone = [token for token, expires_at in self.tokens.items() if expires_at <= now_ms]
        for token in gone:
            self.tokens.drop(token)
        return len(gone)
