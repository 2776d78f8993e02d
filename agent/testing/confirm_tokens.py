"""Used confirm tokens without a database."""

from __future__ import annotations

from agent.testing.memory.confirm_tokens import ConfirmTokens


class InMemoryConfirmTokens(ConfirmTokens):
    """The capability `confirm_tokens` alone: what a store of another kind may keep its used tokens in, in tests."""

    capabilities = frozenset({"confirm_tokens"})
