"""A second process on a sink, for the contract of sinks: `python -m agent.testing.sink_process`.

It reads a JSON line and answers with one: what to do is in `do`. It runs with the settings of DJANGO_SETTINGS_MODULE,
on the databases whose names `use` gives, so that it meets the tests on their database.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import django


class OtherProcess:
    """A process that writes and follows elsewhere. Use it as a context manager."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> OtherProcess:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=30)

    def ask(self, do: str, **fields: object) -> Any:  # noqa: ANN401 - what is asked for
        """Say what to do, and wait for the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **fields}) + "\n")
        self._process.stdin.flush()
        return self.answer()

    def answer(self) -> Any:  # noqa: ANN401
        """The next answer; `follow` has several: when it is there, when it was told to tell, and at the end."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the other process ended with {self._process.wait()}")
        return json.loads(line)


if __name__ == "__main__":
    django.setup()  # models can be imported from here on

    from agent.testing.served_sink import serve

    serve()
