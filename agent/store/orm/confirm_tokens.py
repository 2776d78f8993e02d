"""Capability `confirm_tokens`: a token is used by the insert of its hash."""

from __future__ import annotations

from agent.domain.clock import epoch_ms
from agent.models import ConfirmToken
from agent.models.erasure import erase
from agent.models.inserts import Insert
from agent.store.orm.unit import OrmUnit

_insert = Insert(ConfirmToken)


class OrmConfirmTokens(OrmUnit):
    def claim_token(self, token_hash: str, actor_ref: str, tool: str, expires_at_ms: int) -> bool:
        values = {
            "hash": token_hash,
            "actor_ref": actor_ref,
            "tool": tool,
            "expires_at_ms": expires_at_ms,
            "created_at_ms": epoch_ms(self.clock()),
        }
        return _insert.new(self.db, _insert.draft(self.db, values)) is not None

    def release_token(self, token_hash: str) -> None:
        erase(ConfirmToken.objects.using(self.db).filter(pk=token_hash))

    def purge_expired_tokens(self, now_ms: int) -> int:
        return erase(ConfirmToken.objects.using(self.db).expired(now_ms))
