"""The bridge from async code into sync threads: bounded, and never without a thread for its work."""

from __future__ import annotations

import asyncio
import threading

import pytest

from agent.db import Threads

DEADLINE = 10


async def _names(pool: Threads, times: int) -> set[str]:
    async with asyncio.timeout(DEADLINE):
        return {await pool.run(lambda: threading.current_thread().name) for _ in range(times)}


def test_one_caller_after_another_uses_one_thread() -> None:
    pool = Threads(8, "t")
    assert len(asyncio.run(_names(pool, 50))) == 1
    pool.close()


def test_no_more_threads_than_it_may_have_and_all_work_is_done() -> None:
    pool, both = Threads(2, "t"), threading.Barrier(2, timeout=DEADLINE)

    async def work() -> list[int]:
        async with asyncio.timeout(DEADLINE):
            return await asyncio.gather(*(pool.run(both.wait) for _ in range(40)))

    assert sorted(asyncio.run(work())) == [0] * 20 + [1] * 20
    pool.close()


def test_it_works_again_after_every_close() -> None:
    pool = Threads(8, "t")
    for _ in range(200):
        asyncio.run(_names(pool, 1))
        pool.close()


def test_an_exception_reaches_who_waits() -> None:
    pool = Threads(1, "t")

    def fail() -> None:
        raise ValueError("no")

    async def work() -> None:
        with pytest.raises(ValueError, match="no"):
            await pool.run(fail)
        assert await pool.run(lambda: 7) == 7

    asyncio.run(work())
    pool.close()


def test_who_stops_waiting_does_not_stop_the_work() -> None:
    pool, begun, may_end, ended = Threads(1, "t"), threading.Event(), threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        may_end.wait(DEADLINE)
        ended.set()

    async def work() -> None:
        task = asyncio.ensure_future(pool.run(slow))
        await asyncio.to_thread(begun.wait, DEADLINE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        may_end.set()
        assert await pool.run(ended.is_set)

    asyncio.run(work())
    pool.close()


def test_what_can_wait_lets_the_others_go_first_but_not_for_ever() -> None:
    pool, may_begin, done = Threads(1, "t"), threading.Event(), list[str]()

    async def work() -> None:
        first = asyncio.ensure_future(pool.run(lambda: may_begin.wait(DEADLINE)))
        await asyncio.sleep(0)  # it has the thread
        patient = [pool.run(lambda: done.append("patient"), patient=True) for _ in range(4)]
        waiting = [asyncio.ensure_future(each) for each in patient]
        await asyncio.sleep(0)
        waiting += [asyncio.ensure_future(pool.run(lambda: done.append("urgent"))) for _ in range(8)]
        await asyncio.sleep(0)
        may_begin.set()
        await asyncio.gather(first, *waiting)

    asyncio.run(work())
    pool.close()
    urgent, patient = ["urgent"], ["patient"]
    assert done == 2 * (3 * urgent + patient) + 2 * urgent + 2 * patient
