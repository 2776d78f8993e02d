"""The HTTP server under the vendors: real sockets, a thread of its own, faults on demand."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from agent.testing.contracts.provider import VendorAnswer

Body = dict[str, Any]
PATIENCE = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """An answer in the vendor's own bytes, for faults that `VendorAnswer` has no word for."""

    events: tuple[bytes, ...] = ()
    status: int = 200
    content_type: str = "text/event-stream"
    headers: Mapping[str, str] = field(default_factory=dict)
    ending: Literal["end", "silence", "cut"] = "end"


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it came over the wire."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Body


class Dialect:
    """A wire format: how an answer is said, and which requests the vendor would refuse."""

    def speak(self, answer: VendorAnswer, body: Body) -> Iterable[bytes]:
        raise NotImplementedError

    def refuse(self, status: int, text: str) -> bytes:
        raise NotImplementedError

    def complaint(self, body: Body) -> str | None:
        """What is wrong with a request, in words; None = it would be accepted."""
        raise NotImplementedError


def event(data: object, name: str | None = None) -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


class Vendor:
    """A vendor that gives the answers it was told, one a request, and keeps what it was asked."""

    def __init__(self, dialect: Dialect, secret: str = "sk-test-0123456789abcdef") -> None:
        self.dialect = dialect
        self.secret = secret
        self.answers: deque[VendorAnswer | Raw] = deque()
        self.seen: list[Seen] = []
        self.connections = 0  # ever made
        self._open = 0
        self._closed = threading.Condition()
        self.dropped = threading.Event()  # a client went away before the end of our answer
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = self._in_loop(asyncio.start_server(self._connection, "127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        self._in_loop(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    def _in_loop(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    async def _stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        self._count(1)
        try:
            while await self._exchange(reader, writer):
                pass
        except ConnectionError:  # it went while we were still speaking
            self.dropped.set()
        except (asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()
            self._count(-1)

    def _count(self, change: int) -> None:
        with self._closed:
            self._open += change
            self._closed.notify_all()

    def all_closed(self) -> bool:
        """Wait until no connection is open; False when one still is after a long time."""
        with self._closed:
            return self._closed.wait_for(lambda: self._open == 0, PATIENCE)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        seen = await _read(reader)
        self.seen.append(seen)
        answer = self._answer_to(seen)
        _write_head(writer, answer)
        for data in answer.events:
            writer.write(b"%x\r\n%s\r\n" % (len(data), data))
            await writer.drain()
        if answer.ending == "silence":
            await reader.read()
            self.dropped.set()
        if answer.ending == "end":
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        return answer.ending == "end"

    def _answer_to(self, seen: Seen) -> Raw:
        if complaint := self.dialect.complaint(seen.body):
            return self._refusal(400, complaint)
        answer = self.answers.popleft() if self.answers else VendorAnswer(status=418)
        if isinstance(answer, Raw):
            return answer
        if answer.status is not None:
            return self._refusal(answer.status, f"You are not welcome with Authorization: Bearer {self.secret}")
        return Raw(events=tuple(self.dialect.speak(answer, seen.body)), ending=answer.ending)

    def _refusal(self, status: int, text: str) -> Raw:
        return Raw(status=status, content_type="application/json", events=(self.dialect.refuse(status, text),))


async def _read(reader: asyncio.StreamReader) -> Seen:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
    content = await reader.readexactly(int(headers.get("content-length", "0")))
    return Seen(method, path, headers, json.loads(content) if content else {})


def _write_head(writer: asyncio.StreamWriter, answer: Raw) -> None:
    fields = {"Content-Type": answer.content_type, "Transfer-Encoding": "chunked", **answer.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    writer.write(f"HTTP/1.1 {answer.status} Answer\r\n{lines}\r\n".encode())


def slices(text: str, size: int = 7) -> list[str]:
    """A text in the small pieces in which vendors stream arguments."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def arguments(call_input: Any) -> str:
    """The arguments of a planned call as the model would write them."""
    raw = call_input.get("__raw") if isinstance(call_input, dict) else None
    return raw if isinstance(raw, str) else json.dumps(call_input)
