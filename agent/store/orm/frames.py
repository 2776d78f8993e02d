"""Capability `frames`: the numbered rows of streams."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import lru_cache, reduce
from operator import or_
from typing import Any

from django.db import IntegrityError, connections
from django.db.models import Exists, F, Max, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from agent.db import one_writer
from agent.domain.canonical import compact_json
from agent.domain.clock import epoch_ms
from agent.domain.snapshots import NumberedFrame
from agent.errors import LeaseLost
from agent.models import Run, StreamFrame, frame_insert
from agent.models.erasure import erase
from agent.models.frame_insert import Texts
from agent.models.prepared import Row, Select, Slot
from agent.store.orm.unit import OrmUnit

_TRIES = 8
_IDS_AT_ONCE = 500
_STREAMS_AT_ONCE = 128

_last = Select(lambda: StreamFrame.objects.filter(run_id=Slot("run")).order_by("-seq").values_list("seq")[:1])
_run = Select(lambda: Run.objects.filter(pk=Slot("run")).values_list("frame_base", "attempt"))


@lru_cache(maxsize=64)
def _page(limit: int) -> Select:
    later = StreamFrame.objects.filter(run_id=Slot("run"), seq__gt=Slot("after")).in_order()
    return Select(lambda: later.values_list("seq", "frame", "error")[:limit])


@lru_cache(maxsize=16)
def _pages(runs: int, limit: int) -> Select:
    above = (Q(run_id=Slot(f"run{each}"), seq__gt=Slot(f"after{each}")) for each in range(runs))
    later = StreamFrame.objects.filter(reduce(or_, above)).order_by("run_id", "seq")
    return Select(lambda: later.values_list("seq", "frame", "error", "run_id")[:limit])


class OrmFrames(OrmUnit):
    def append_frame(
        self, run_id: str, frame: str | None, error: dict[str, Any] | None = None, *, attempt: int | None = None
    ) -> int:
        return self._append(run_id, [(frame, None if error is None else compact_json(error))], attempt)

    def append_frames(
        self, run_id: str, frames: Sequence[str | None], *, attempt: int | None = None, by: str | None = None
    ) -> int:
        if not frames:
            return self._appended_nothing(run_id, attempt, by or run_id)
        texts: list[Texts] = [(frame, None) for frame in frames]
        if len(texts) <= frame_insert.MOST:
            return self._append(run_id, texts, attempt, by=by)
        with self.joined():
            return [self._append(run_id, part, attempt, by=by) for part in batches(texts, frame_insert.MOST)][-1]

    def _appended_nothing(self, run_id: str, attempt: int | None, by: str) -> int:
        run = _run.first(self.db, run=by)
        if attempt is not None and run is not None and run[1] > attempt:
            raise LeaseLost
        return self.last_seq(run_id)

    def _append(
        self,
        run_id: str,
        frames: Sequence[Texts],
        attempt: int | None,
        *,
        by: str | None = None,
        tries: int = _TRIES,
    ) -> int:
        now_ms = epoch_ms(self.clock())
        try:
            with self._own_savepoint():
                last = frame_insert.append(self.db, run_id, frames, by=by, attempt=attempt, now_ms=now_ms)
        except IntegrityError:  # another writer took the number between our look and our insert
            if tries == 1:
                raise
            return self._append(run_id, frames, attempt, by=by, tries=tries - 1)
        if last is None:
            raise LeaseLost
        return last

    def _own_savepoint(self) -> AbstractContextManager[object]:
        """Inside a unit a collision must not end the unit; alone, the statement is its own transaction."""
        return self.atomic() if connections[self.db].in_atomic_block else one_writer(self.db)

    def read_frames(self, run_id: str, after: int, limit: int = 500) -> list[NumberedFrame]:
        if limit <= 0:
            return []
        return [_numbered(row) for row in _page(limit)(self.db, run=run_id, after=after)]

    def read_streams(self, positions: Mapping[str, int], limit: int = 500) -> dict[str, list[NumberedFrame]]:
        found: dict[str, list[NumberedFrame]] = {}
        for some in batches(sorted(positions.items()), _STREAMS_AT_ONCE):
            for row in self._read_streams(some, limit):
                found.setdefault(row[3], []).append(_numbered(row))
                limit -= 1
        return found

    def _read_streams(self, positions: Sequence[tuple[str, int]], limit: int) -> list[Row]:
        if limit <= 0:
            return []
        size = 1 << (len(positions) - 1).bit_length()  # few different statements: the last run fills up the places
        filled = [*positions, *[positions[-1]] * (size - len(positions))]
        slots: dict[str, object] = {f"run{at}": run_id for at, (run_id, _) in enumerate(filled)}
        slots |= {f"after{at}": after for at, (_, after) in enumerate(filled)}
        return _pages(size, limit)(self.db, **slots)

    def has_frames(self, run_id: str) -> bool:
        return bool(_last(self.db, run=run_id))

    def last_seq(self, run_id: str) -> int:
        row = _last.first(self.db, run=run_id) or _run.first(self.db, run=run_id)
        return 0 if row is None else row[0]

    def end_stream(self, run_id: str, frames: Sequence[str], error: dict[str, Any] | None = None) -> bool:
        last_rows: list[Texts] = [(frame, None) for frame in frames]
        with self.joined():
            # Several may end the stream of a run that nobody drives any more: they stand in line at its row.
            Run.objects.using(self.db).select_for_update().filter(pk=run_id).values_list("pk").first()
            last = (
                StreamFrame.objects.using(self.db).filter(run_id=run_id).order_by("-seq").values_list("frame").first()
            )
            if last == (None,):
                return False
            self._append(run_id, [*last_rows, (None, None if error is None else compact_json(error))], None)
        return True

    def unended_streams(self, since: datetime, until: datetime, limit: int) -> list[str]:
        if limit <= 0:
            return []
        last = StreamFrame.objects.filter(run_id=OuterRef("pk")).order_by("-seq").values("frame")[:1]
        settled = Run.objects.using(self.db).filter(settled_at__gte=since, settled_at__lt=until)
        unended = settled.annotate(last_frame=Subquery(last)).exclude(last_frame=None).order_by("settled_at", "id")
        return list(unended.values_list("id", flat=True)[:limit])

    def remove_frames(self, run_ids: Sequence[str]) -> int:
        with self.joined():
            return remove(self.db, run_ids)

    def lapsed_streams(self, cutoff_ms: int, limit: int = 200) -> list[str]:
        if limit <= 0:
            return []
        frames = StreamFrame.objects.using(self.db)
        later = frames.filter(run_id=OuterRef("run_id"), created_at_ms__gte=cutoff_ms)
        old = frames.filter(~Exists(later), created_at_ms__lt=cutoff_ms).values("run_id")
        last = old.annotate(last=Max("created_at_ms")).order_by("last", "run_id")
        return [row["run_id"] for row in last[:limit]]


def _numbered(row: Row) -> NumberedFrame:
    seq, frame, error = row[:3]
    return NumberedFrame(seq=seq, frame=frame, error=None if error is None else json.loads(error))


def remove(using: str, run_ids: Sequence[str]) -> int:
    """Remove the frames of runs; a run that is not over remembers its last number, so that it goes on above it."""
    return sum(_removed(using, some) for some in batches(list(dict.fromkeys(run_ids)), _IDS_AT_ONCE))


def _removed(using: str, run_ids: Sequence[str]) -> int:
    of_runs = StreamFrame.objects.using(using).filter(run_id__in=run_ids)
    newest = of_runs.aggregate(id=Max("id"))["id"]
    if newest is None:
        return 0
    seen = of_runs.filter(id__lte=newest)  # a frame that is written meanwhile stays
    last = seen.filter(run_id=OuterRef("pk")).order_by("-seq").values("seq")[:1]
    unfinished = Run.objects.using(using).open().filter(pk__in=run_ids)
    unfinished.update(frame_base=Coalesce(Subquery(last), F("frame_base")))
    return erase(seen)


def batches(items: Sequence[Any], size: int = _IDS_AT_ONCE) -> Iterator[Sequence[Any]]:
    """Parts short enough for one statement."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
