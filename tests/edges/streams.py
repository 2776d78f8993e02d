"""A client of a served site: streams read as they arrive, answers read whole."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, TypeVar

from tests.edges.server import Server, basic

JSON = {"Content-Type": "application/json"}
T = TypeVar("T")


class Stream:
    """An SSE response, read event by event as it arrives; hung up at the end of the test."""

    opened: ClassVar[list[Stream]] = []

    def __init__(self, server: Server, method: str, path: str, body: object = None, **headers: str) -> None:
        self.connection = server.connect()
        text = json.dumps(body) if body is not None else None
        self.connection.request(method, path, text, {**JSON, **basic("alice"), **headers})
        self.response = self.connection.getresponse()
        self.opened.append(self)

    def event(self) -> tuple[str, int | None, Any] | None:
        """The next event; None at the end of the response."""
        name, number, data = "frame", None, ""
        while line := self.response.readline().decode():
            field, _, value = line.rstrip("\n").partition(": ")
            if field == "event":
                name = value
            elif field == "id":
                number = int(value)
            elif field == "data":
                data += value
            elif not line.strip() and data:
                return name, number, json.loads(data)
        return None

    def rest(self) -> list[tuple[str, int | None, Any]]:
        return list(iter(self.event, None))

    def hang_up(self) -> None:
        self.response.close()
        self.connection.close()

    def __getitem__(self, name: str) -> str:
        return self.response.headers[name]


def chat(server: Server, message: str, **headers: str) -> Stream:
    return Stream(server, "POST", "/agent/chat", {"message": message}, **headers)


def ask(server: Server, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    with contextlib.closing(server.connect()) as connected:
        chunked = "Transfer-Encoding" in headers
        connected.request(method, path, body, {**JSON, **basic("alice"), **headers}, encode_chunked=chunked)
        with connected.getresponse() as response:
            return response.status, json.loads(response.read() or b"null")


def in_parallel(work: Callable[[T], None], items: Iterable[T]) -> None:
    """Work on all items at once, each in a thread; what one raises is raised."""
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(work, items))


def eventually(fact: Callable[[], bool], seconds: float = 20) -> bool:
    """Whether it becomes true; the other side is another process, so there is nothing to wait on but the clock."""
    pause = threading.Event()
    for _ in range(int(seconds * 50)):
        if fact():
            return True
        pause.wait(0.02)
    return fact()


def hang_up_all() -> None:
    while Stream.opened:
        Stream.opened.pop().hang_up()
