"""What every capability of the ORM store stands on: the database it writes to, its clock, its ids, its transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime, timedelta

from django.db import connections, router, transaction
from django.utils import timezone

from agent.conf import agent_settings
from agent.db import one_writer
from agent.domain.ids import new_id as time_ordered_id
from agent.models import Thread

_MILLISECOND = timedelta(milliseconds=1)


class OrmUnit:
    """The unit of work; it holds no state of a request, so one store serves every thread of a process."""

    waits = True

    def __init__(
        self,
        *,
        clock: Callable[[], datetime] | None = None,
        new_id: Callable[[], str] | None = None,
        model_aliases: Mapping[str, str] | None = None,
    ) -> None:
        self.clock = clock or timezone.now
        self.new_id = new_id or time_ordered_id
        self._model_aliases = model_aliases

    @property
    def db(self) -> str:
        """Where the agent's tables are written, and read in the same breath: a replica may lag behind a lease."""
        return router.db_for_write(Thread)

    @contextmanager
    def atomic(self) -> Iterator[None]:
        using = self.db
        with one_writer(using), transaction.atomic(using=using):
            yield

    def on_commit(self, call: Callable[[], object]) -> None:
        transaction.on_commit(call, using=self.db)

    def joined(self) -> AbstractContextManager[None]:
        """A transaction of our own, or the caller's: a savepoint would cost two round trips and protect nothing.

        Whoever joins raises before its first write, or only where the whole unit has to be given up.
        """
        return nullcontext() if connections[self.db].in_atomic_block else self.atomic()

    def _alias_of(self, model_id: str) -> str | None:
        """The model whose price a model without one has."""
        aliases = agent_settings().model_aliases if self._model_aliases is None else self._model_aliases
        return aliases.get(model_id)


def whole_ms(start: datetime, end: datetime) -> int:
    """Milliseconds from one instant to a later one, rounded down; 0 if the clock went back."""
    return max(0, (end - start) // _MILLISECOND)
