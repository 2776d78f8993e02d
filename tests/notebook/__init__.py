"""A host's own store, as somebody else would write it: what every store must keep, in plain dictionaries.

It has none of the optional capabilities, inherits nothing of ours, and knows us by the names that a store's promise is
made of: the protocols of `agent.store`, their values in `agent.domain`, `agent.errors`.
"""

from __future__ import annotations

from agent.store import REQUIRED
from tests.notebook.ledger import Ledger
from tests.notebook.tool_calls import ToolCalls


class NotebookStore(ToolCalls, Ledger):
    """Threads, messages, tool calls and the ledger of one process, and nothing else."""

    capabilities = REQUIRED


__all__ = ["NotebookStore"]
