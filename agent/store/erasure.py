"""The promise of the store about what somebody said, once it has to go (spec 01 §8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class ErasureStore(Protocol):
    """Capability `erasure`: texts go, every row that is counted stays. All of it may be done again."""

    def has_open_work(self, actor_ref: str) -> bool:
        """Whether a run of theirs is not over, or an action of theirs is undecided, unfinished or untold."""

    def threads_of(self, actor_ref: str, after: str = "", limit: int = 100) -> list[str]:
        """Ids of their threads behind `after`, in order; deleted ones as well."""

    def runs_of(self, actor_ref: str, after: str = "", limit: int = 100) -> list[str]: ...
    def proposals_of(self, actor_ref: str, after: str = "", limit: int = 100) -> list[str]: ...

    def erase_thread(self, thread_id: str) -> bool:
        """Empty its title, messages and calls, remove its summaries and queue, and delete it softly.

        False, and nothing done, while a run holds it.
        """

    def erase_runs(self, run_ids: Sequence[str]) -> None:
        """Empty what they were asked and how they failed; remove their journals and frames."""

    def erase_proposal(self, key: str) -> bool:
        """Empty what was asked for and what came of it; False for one that changed meanwhile."""

    def erase_belongings(self, actor_ref: str) -> list[str]:
        """Remove their memories, idempotency keys and staged media; the names of the files that are to follow."""
