"""FRAME_CONTRACT (spec 02 §4.9): the numbered rows under every sink that keeps its frames in the store."""

from __future__ import annotations

from functools import partial

from agent.errors import LeaseLost
from agent.testing.contracts.base import ContractMismatch, expect, same
from agent.testing.contracts.rows import claimed, completed, new_run, running, stored_run
from agent.testing.contracts.store import START, StoreCase, StoreSubject, case

FRAME_CONTRACT: list[StoreCase] = []
ERROR = {"code": "run_failed", "message": "The request could not be carried out."}


@case(FRAME_CONTRACT, "01 frames are numbered from 1 without gaps and read back as they were")
def _numbers(subject: StoreSubject) -> None:
    store = subject.store
    seqs = [
        store.append_frame("run-1", '{"kind":"text"}\n'),
        store.append_frames("run-1", ["b\n", "c\n"]),
        store.append_frames("run-1", []),
        store.append_frame("run-1", None, ERROR),
        store.append_frames("run-2", ["x", None]),
    ]
    same(seqs, [1, 3, 3, 4, 2], "numbers")
    frames = store.read_frames("run-1", 0)
    same(
        [(row.seq, row.frame) for row in frames], [(1, '{"kind":"text"}\n'), (2, "b\n"), (3, "c\n"), (4, None)], "rows"
    )
    same([row.error for row in frames], [None, None, None, ERROR], "errors")
    same([row.terminal for row in store.read_frames("run-2", 0)], [False, True], "the terminal row")


@case(FRAME_CONTRACT, "02 reading goes on above a number, up to a limit")
def _reading(subject: StoreSubject) -> None:
    store = subject.store
    store.append_frames("run-1", [str(number) for number in range(1, 8)])
    pages = [[row.seq for row in store.read_frames("run-1", after, 3)] for after in (-5, 0, 3, 6, 7, 99)]
    same(pages, [[1, 2, 3], [1, 2, 3], [4, 5, 6], [7], [], []], "pages")
    same(store.read_frames("run-1", 0, 0), [], "limit 0")
    same(
        (store.read_frames("nobody", 0), store.last_seq("nobody"), store.has_frames("nobody")), ([], 0, False), "nobody"
    )
    same((store.last_seq("run-1"), store.has_frames("run-1")), (7, True), "the run")


@case(FRAME_CONTRACT, "03 racing writers give each frame a number of its own", commits=True)
def _race(subject: StoreSubject) -> None:
    store = subject.store

    def write(writer: int) -> list[int]:
        return [store.append_frame("run-1", f"{writer}-{number}") for number in range(5)]

    seqs = subject.parallel([partial(write, writer) for writer in range(2)])
    same(sorted(seqs[0] + seqs[1]), list(range(1, 11)), "numbers")
    rows = store.read_frames("run-1", 0)
    same(len({row.frame for row in rows}), 10, "each frame once")
    expect(all(list(mine) == sorted(mine) for mine in seqs), "in the order of each writer")


@case(
    FRAME_CONTRACT,
    "04 a writer of an older attempt is refused, one without an attempt or of no run is not",
    needs=("runs",),
)
def _fence(subject: StoreSubject) -> None:
    store = subject.store
    running(store)
    store.append_frame("run-1", "a", attempt=1)
    subject.clock.advance(60)
    claimed(store, owner="w2")
    for write in (
        partial(store.append_frame, "run-1", "late", attempt=1),
        partial(store.append_frames, "run-1", ["late"], attempt=1),
    ):
        try:
            write()
        except LeaseLost:
            continue
        raise ContractMismatch("a frame of an older attempt was written")
    store.append_frames("run-1", ["b"], attempt=2)
    store.append_frames("run-1", ["c"])
    store.append_frame("unknown", "d", attempt=7)
    same([row.frame for row in store.read_frames("run-1", 0)], ["a", "b", "c"], "frames")


@case(
    FRAME_CONTRACT,
    "05 a purged stream of an open run goes on with higher numbers, of a settled one it is gone",
    needs=("runs",),
)
def _purge(subject: StoreSubject) -> None:
    store = subject.store
    for run_id in ("open", "settled"):
        new_run(store, run_id)
        store.append_frames(run_id, ["a", "b"])
    store.record_run_end("settled", completed())
    store.append_frames("other", ["x"])
    same(store.remove_frames(["open", "settled", "nobody"]), 4, "rows removed")
    same(store.remove_frames([]), 0, "nothing asked")
    same([store.has_frames(run_id) for run_id in ("open", "settled", "other")], [False, False, True], "what is left")
    same([stored_run(store, "open").frame_base, stored_run(store, "settled").frame_base], [2, 0], "frame_base")
    same(
        [store.last_seq("open"), store.append_frame("open", "c"), store.append_frame("open", "d")], [2, 3, 4], "goes on"
    )
    same([row.seq for row in store.read_frames("open", 0)], [3, 4], "numbers")


@case(FRAME_CONTRACT, "06 a stream has lapsed when its last write is older than the cutoff, oldest first")
def _lapsed(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    for run_id in ("b", "c", "a"):
        store.append_frames(run_id, ["1"])
        clock.advance(1)
    store.append_frame("b", "2")
    now = int(clock.now.timestamp() * 1000)
    same(store.lapsed_streams(now), ["c", "a"], "older than the last write of b")
    same(store.lapsed_streams(now + 1), ["c", "a", "b"], "a millisecond later")
    same([store.lapsed_streams(now + 1, 1), store.lapsed_streams(now - 2000)], [["c"], []], "a limit, and none")


@case(FRAME_CONTRACT, "07 frames of a unit that fails are not there")
def _rollback(subject: StoreSubject) -> None:
    store = subject.store
    store.append_frame("run-1", "a")
    try:
        with store.atomic():
            store.append_frames("run-1", ["b", "c"])
            raise LeaseLost
    except LeaseLost:
        pass
    same((store.last_seq("run-1"), store.append_frame("run-1", "d")), (1, 2), "numbers")


@case(
    FRAME_CONTRACT,
    "08 of several that end a stream nobody drives, one does, and no other later",
    commits=True,
    needs=("runs",),
)
def _end(subject: StoreSubject) -> None:
    store = subject.store
    new_run(store)
    store.append_frames("run-1", ["a\n"])
    error = {"code": "run_failed", "message": "m"}
    ends = subject.parallel([partial(store.end_stream, "run-1", ["b\n"], error)] * 4)
    same(sorted(ends), [False, False, False, True], "who ended it")
    rows = [(row.frame, row.error) for row in store.read_frames("run-1", 0)]
    same(rows, [("a\n", None), ("b\n", None), (None, error)], "the rows")
    expect(store.end_stream("run-2", []), "an empty one")


@case(
    FRAME_CONTRACT,
    "09 streams of settled runs that were left open are found: with frames, without an end",
    needs=("runs",),
)
def _unended(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    for run_id in ("left", "ended", "silent", "open", "early", "late"):
        new_run(store, run_id)
        if run_id != "silent":
            store.append_frames(run_id, ["a\n"])
    store.record_run_end("early", completed())
    since = clock.advance(1)
    for run_id in ("left", "ended", "silent"):
        store.record_run_end(run_id, completed())
    store.end_stream("ended", [])
    until = clock.advance(1)
    store.record_run_end("late", completed())
    same(store.unended_streams(since, until, 10), ["left"], "between")
    same(store.unended_streams(START, clock.advance(1), 2), ["early", "left"], "oldest first")


@case(FRAME_CONTRACT, "10 several streams are read together, each above its own number, up to a limit in all")
def _together(subject: StoreSubject) -> None:
    store = subject.store
    for run_id in ("a", "b", "c"):
        store.append_frames(run_id, [f"{run_id}{number}" for number in range(1, 5)])
    store.append_frame("b", None, ERROR)

    def read(positions: dict[str, int], limit: int = 500) -> list[tuple[str, list[int]]]:
        return [(run_id, [row.seq for row in rows]) for run_id, rows in store.read_streams(positions, limit).items()]

    same(read({"c": 3, "a": 0, "b": 2, "nobody": 0}), [("a", [1, 2, 3, 4]), ("b", [3, 4, 5]), ("c", [4])], "above")
    same(read({"a": 4, "b": 0}, 3), [("b", [1, 2, 3])], "a limit")
    same(read({"a": 2, "b": 0}, 3), [("a", [3, 4]), ("b", [1])], "a limit in all")
    same([read({}), read({"a": 9}), read({"a": 0}, 0)], [[], [], []], "nothing")
    same([row.error for row in store.read_streams({"b": 4})["b"]], [ERROR], "the terminal row")
    many = {f"run-{number}": 0 for number in range(300)} | {"c": 3}
    same(read(many), [("c", [4])], "many")
