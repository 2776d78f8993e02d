"""Frames in Redis, one stream a run: followed by every process on that server."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, cast

import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.retry import Retry

from agent.db import in_db, in_db_later
from agent.domain.canonical import compact_json
from agent.domain.snapshots import NumberedFrame
from agent.errors import LeaseLost
from agent.sink_options import SinkOptions
from agent.sinks.followers import Positions
from agent.sinks.outbox import Outbox, Parcel
from agent.sinks.pump import PAGE, Pump
from agent.sinks.pumped import PumpedSink, Speaker
from agent.store.base import AgentStore

PREFIX: Final = "agent:stream"
WRITTEN: Final = f"{PREFIX}s"  # a sorted set: when each run was last written to
PARKED_SECONDS: Final = 30 * 24 * 3600  # how long the numbers of a run that is not over outlive its frames
CONNECT_SECONDS: Final = 1.0
ANSWER_SECONDS: Final = 5.0
BLOCK_MS: Final = 2000
AWAY: Final = (redis.ConnectionError, redis.TimeoutError)
LOST, OVER = -1, -2

# KEYS: stream, numbers, written. ARGV: run, token, attempt ('' = none), now in ms, TTL in seconds (0 = for ever), base
# of the numbers, seconds that these are kept, whether only an open stream is written to, the name of the attempt (each
# run that speaks here has one), error, frames ('' = the end).
APPEND: Final = """
local known = redis.call('HMGET', KEYS[2], ARGV[9], 'last', 'token', 'over')
local attempt, last = tonumber(ARGV[3]), tonumber(known[2] or ARGV[6])
if known[3] == ARGV[2] then return last end
if attempt and attempt < tonumber(known[1] or 0) then return -1 end
if ARGV[8] == '1' and known[4] then return -2 end
if attempt then redis.call('HSET', KEYS[2], ARGV[9], attempt) end
for at = 11, #ARGV do
  last = last + 1
  if ARGV[at] ~= '' then
    redis.call('XADD', KEYS[1], last .. '-0', 'frame', ARGV[at])
  else
    redis.call('XADD', KEYS[1], last .. '-0', 'end', ARGV[10])
    redis.call('HSET', KEYS[2], 'over', 1)
  end
end
redis.call('HSET', KEYS[2], 'last', last, 'token', ARGV[2])
redis.call('ZADD', KEYS[3], ARGV[4], ARGV[1])
if ARGV[5] ~= '0' then
  redis.call('EXPIRE', KEYS[1], ARGV[5])
  redis.call('EXPIRE', KEYS[2], ARGV[7])
end
return last
"""

logger = logging.getLogger("agent.sinks")


def stream_of(run_id: str) -> str:
    return f"{PREFIX}:{run_id}"


def numbers_of(run_id: str) -> str:
    return f"{PREFIX}:{run_id}:numbers"


class RedisSink(PumpedSink):
    """Rows `seq-0` of a stream; options: `SinkOptions`, of which `url` is needed."""

    def __init__(self, store: AgentStore | None, **options: Any) -> None:  # noqa: ANN401 - checked by SinkOptions
        given = SinkOptions(**options)
        assert given.url is not None, "agent.E010 asks for it"
        super().__init__(store, given, run=in_db, later=in_db_later, ear=RedisEar(given.url))
        self._store = store
        self._redis = redis.Redis.from_url(
            given.url,
            decode_responses=True,
            socket_connect_timeout=CONNECT_SECONDS,
            socket_timeout=ANSWER_SECONDS,
            retry=Retry(NoBackoff(), 1),
        )
        self._script = self._redis.register_script(APPEND)
        self._outbox = Outbox(self._send, self._sent, away=AWAY)
        self._bases: dict[str, int] = {}  # of the runs that are written here

    def stop(self) -> None:
        super().stop()
        self._redis.close()

    def _append(
        self, run_id: str, speaker: Speaker, frames: Sequence[str | None], error: dict[str, Any] | None
    ) -> int | None:
        return self._outbox.put(run_id, speaker, frames, error)

    def finish(self, run_id: str, frames: Sequence[str], error: dict[str, Any] | None = None) -> None:
        rows = [*frames, None]
        last = self._outbox.put(run_id, None, rows, error)
        if last is not None:
            self._appended(run_id, last, rows, error)

    def _send(self, parcel: Parcel) -> int:
        run_id, ttl = parcel.run_id, self._options.ttl_seconds
        over = bool(parcel.frames) and parcel.frames[-1] is None
        given = [
            run_id,
            parcel.token,
            "" if parcel.speaker is None else parcel.speaker.attempt,
            self._now_ms(),
            ttl,
            self._base(run_id),
            ttl if over else ttl + PARKED_SECONDS,
            int(parcel.speaker is None),
            "attempt" if parcel.speaker is None or parcel.speaker.run_id == run_id else f"of:{parcel.speaker.run_id}",
            "" if parcel.error is None else compact_json(parcel.error),
            *("" if frame is None else frame for frame in parcel.frames),
        ]
        last = cast("int", self._script(keys=[stream_of(run_id), numbers_of(run_id), WRITTEN], args=given))
        if over or last == LOST:
            self._bases.pop(run_id, None)
        else:
            self._bases[run_id] = last  # a server that lost everything goes on above it
        if last == LOST:
            raise LeaseLost
        return last

    def _sent(self, parcel: Parcel, last: int) -> None:
        self._appended(parcel.run_id, last, parcel.frames, parcel.error)

    def _appended(
        self, run_id: str, last: int | None, frames: Sequence[str | None], error: dict[str, Any] | None
    ) -> None:
        if last != OVER:
            super()._appended(run_id, last, frames, error)

    def _base(self, run_id: str) -> int:
        """Above which number an emptied stream goes on; the run's row remembers it."""
        if run_id not in self._bases:
            self._bases[run_id] = 0
            if self._store is not None and "runs" in self._store.capabilities:
                state = self._store.run_states([run_id]).get(run_id)
                self._bases[run_id] = state.frame_base if state is not None else 0
        return self._bases[run_id]

    def _now_ms(self) -> int:
        if self._store is None:
            seconds, micros = self._redis.time()
            return seconds * 1000 + micros // 1000
        return int(self._store.clock().timestamp() * 1000)

    async def _read(self, positions: Positions, limit: int) -> Mapping[str, Sequence[NumberedFrame]]:
        return await in_db(self._rows, positions, limit)

    def _rows(self, positions: Positions, limit: int) -> Mapping[str, Sequence[NumberedFrame]]:
        given: dict[Any, Any] = {stream_of(run_id): f"{after}-0" for run_id, after in positions.items()}
        return _by_run(self._redis.xread(given, count=limit))

    def stored(self, run_id: str) -> list[NumberedFrame]:
        """Every row that is there, oldest first."""
        return [_row(each) for each in cast("list[Any]", self._redis.xrange(stream_of(run_id)))]

    def has(self, run_id: str) -> bool:
        """False also while the server is away: the conversation is the record, and it is there."""
        try:
            return bool(self._redis.exists(stream_of(run_id)))
        except AWAY:
            logger.warning("whether run %s has frames cannot be seen at the moment", run_id, exc_info=True)
            return False

    def close(self, run_id: str) -> None:
        self._drop([run_id])

    def purge_expired(self) -> int:
        if not self._options.ttl_seconds:
            return 0
        before, gone = f"({self._now_ms() - self._options.ttl_seconds * 1000}", 0
        while run_ids := self._written(before, self._options.purge_batch):
            self._drop(run_ids)
            gone += len(run_ids)
        return gone

    def _written(self, before: str, limit: int) -> list[str]:
        return cast("list[str]", self._redis.zrangebyscore(WRITTEN, "-inf", before, start=0, num=limit))

    def _drop(self, run_ids: Sequence[str]) -> None:
        """Remove streams; first a run that is not over remembers its last number."""
        for run_id in run_ids:
            last = cast("str | None", self._redis.hget(numbers_of(run_id), "last"))
            if last is not None and self._store is not None and "runs" in self._store.capabilities:
                self._store.raise_frame_base(run_id, int(last))
            self._bases.pop(run_id, None)
            pipe = self._redis.pipeline()
            pipe.delete(stream_of(run_id), numbers_of(run_id))
            pipe.zrem(WRITTEN, run_id)
            pipe.execute()


class RedisEar:
    """One XREAD that waits for the streams of all runs that are followed here, and hands their rows on."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client: redis.asyncio.Redis | None = None
        self._last: dict[str, str] = {}  # of each stream that is waited for
        self._joined = asyncio.Event()

    async def attend(self, run_ids: Collection[str]) -> None:
        wanted = {stream_of(run_id) for run_id in run_ids}
        for stream in self._last.keys() - wanted:
            del self._last[stream]
        if self._client is None:
            return
        for stream in wanted - self._last.keys():
            newest: Any = await self._client.xrevrange(stream, count=1)
            self._last[stream] = newest[0][0] if newest else "0-0"
        self._joined.set()

    async def listen(self, pump: Pump) -> None:
        async with redis.asyncio.Redis.from_url(
            self._url, decode_responses=True, socket_connect_timeout=CONNECT_SECONDS, retry=Retry(NoBackoff(), 1)
        ) as client:
            await client.ping()
            self._client, self._last, self._joined = client, {}, asyncio.Event()
            try:
                await self.attend(pump.followed())
                pump.hears()
                while True:
                    await self._hear(client, pump)
            finally:
                self._client = None

    async def _hear(self, client: redis.asyncio.Redis, pump: Pump) -> None:
        """Wait once: until rows come, or other runs are to be waited for."""
        self._joined.clear()
        joined = asyncio.ensure_future(self._joined.wait())
        reading = asyncio.ensure_future(self._waited(client))
        try:
            await asyncio.wait({joined, reading}, return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                for run_id, rows in _by_run(reading.result()).items():
                    self._last[stream_of(run_id)] = f"{rows[-1].seq}-0"
                    pump.publish(run_id, rows)
        finally:
            for each in (joined, reading):
                each.cancel()
            await asyncio.gather(joined, reading, return_exceptions=True)

    async def _waited(self, client: redis.asyncio.Redis) -> Any:  # noqa: ANN401 - as redis-py answers
        if not self._last:
            return await asyncio.Event().wait()
        streams: dict[Any, Any] = dict(self._last)
        return await client.xread(streams, count=PAGE, block=BLOCK_MS)


def _by_run(answer: Any) -> dict[str, list[NumberedFrame]]:  # noqa: ANN401 - a list of pairs, or a dict of pages (RESP3)
    pairs = answer.items() if isinstance(answer, dict) else answer or []
    return {name.removeprefix(f"{PREFIX}:"): [_row(each) for each in rows] for name, rows in pairs}


def _row(entry: tuple[str, Mapping[str, str]]) -> NumberedFrame:
    """A row of the stream; the end of a failed run holds its error."""
    number, fields = entry
    seq = int(number.partition("-")[0])
    if "frame" in fields:
        return NumberedFrame(seq=seq, frame=fields["frame"])
    return NumberedFrame(seq=seq, frame=None, error=json.loads(fields["end"]) if fields["end"] else None)
