"""One warm process that forks a child for each order and says how it ended: `python -m tests.crash.parent`.

It never opens a connection nor starts a thread, so a child is as good as a fresh process, at a hundredth of its price.
An order is a line of JSON: what the child is to do with a run, and where it is to die. The answer is a line with the
child's wait status: negative for the signal that ended it.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

import django

django.setup()  # what follows reads the settings

from django.db import DEFAULT_DB_ALIAS, connections

from agent.models.prepared import Prepared, Select
from agent.registry import registry
from agent.runners import inline  # noqa: F401 - warm
from agent.sinks import database  # noqa: F401 - warm
from agent.store import orm
from tests.crash import site, work

SECONDS = 40  # after which a child that hangs is ended by the alarm


def main() -> None:
    site.declare()
    warm()
    for line in sys.stdin:
        assert threading.active_count() == 1
        assert connections[DEFAULT_DB_ALIAS].connection is None
        print(json.dumps({"status": _forked(work.do, json.loads(line))}), flush=True)


def warm() -> None:
    """Do once what every child would else begin with: build the tools' schemas, compile the statements."""
    assert not [problem for tool in registry.tools() for problem in tool.problems]
    connection = connections[DEFAULT_DB_ALIAS]
    for module in pkgutil.iter_modules(orm.__path__, f"{orm.__name__}."):
        for statement in vars(importlib.import_module(module.name)).values():
            if isinstance(statement, Prepared) and not _locks(statement):
                statement.compiled(DEFAULT_DB_ALIAS, connection)


def _locks(statement: Prepared) -> bool:
    """Whether it can only be compiled inside a transaction, which needs a connection."""
    return isinstance(statement, Select) and bool(statement._build().query.select_for_update)


def _forked(do: Callable[[dict[str, Any]], None], order: dict[str, Any]) -> int:
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    signal.alarm(SECONDS)
    code = 1
    try:
        do(order)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
