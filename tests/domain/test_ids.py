"""Ids are UUIDv7, and rise whatever the clock does."""

from __future__ import annotations

import os
import re
import threading
import time
import uuid

from agent.domain.ids import COUNTER_BITS, IdSource, new_id

UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def test_an_id_is_a_version_7_uuid_as_lower_case_text() -> None:
    made = new_id()
    assert UUID7.fullmatch(made)
    assert str(uuid.UUID(made)) == made
    assert uuid.UUID(made).variant == uuid.RFC_4122


def test_an_id_begins_with_its_millisecond() -> None:
    before = time.time_ns() // 1_000_000
    made = uuid.UUID(IdSource().next())
    assert before <= made.int >> 80 <= time.time_ns() // 1_000_000
    assert IdSource().next(0x017F22E279B0).startswith("017f22e2-79b0-7")


def test_ids_rise_within_a_millisecond() -> None:
    source = IdSource()
    made = [source.next(1_000) for _ in range(10_000)]
    assert made == sorted(set(made))


def test_ids_rise_when_the_clock_goes_back() -> None:
    source = IdSource()
    assert source.next(2_000) < source.next(1_000) < source.next(1_999) < source.next(2_001)


def test_a_counter_that_is_full_borrows_the_next_millisecond() -> None:
    source = IdSource()
    first = source.next(1_000)
    source._counter = (1 << COUNTER_BITS) - 2
    last, over = source.next(1_000), source.next(1_000)
    assert first < last < over
    assert uuid.UUID(over).int >> 80 == 1_001


def test_threads_share_one_rising_sequence() -> None:
    made: list[list[str]] = []

    def work() -> None:
        mine = [new_id() for _ in range(2_000)]
        made.append(mine)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(mine == sorted(mine) for mine in made)
    assert len({one for mine in made for one in mine}) == 8_000


def test_a_forked_child_does_not_repeat_its_parent() -> None:
    new_id()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, "\n".join(new_id() for _ in range(50)).encode())
        os._exit(0)
    mine = {new_id() for _ in range(50)}
    os.waitpid(child, 0)
    theirs = set(os.read(reader, 65_536).decode().split("\n"))
    assert len(theirs) == 50
    assert mine.isdisjoint(theirs)
