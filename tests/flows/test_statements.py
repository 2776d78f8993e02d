"""What a turn costs the database, counted exactly: statements, commits, frame inserts (frames apart)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from agent.db import close_threads
from agent.flows import execution, proposals
from agent.providers.scripted import ScriptedReply, call
from agent.registry import agent, tool
from tests.flows.conftest import Site
from tests.flows.proposing import LEAD, SETTINGS, Desk, declare, run_async, scripted

BOUNDARIES = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE", "ROLLBACK", "SET LOCAL", "SET SESSION", "PRAGMA")
FRAMES = "agent_stream_frame"


@dataclass
class Counted:
    """Every statement of every connection while counting, in order."""

    connections: list[BaseDatabaseWrapper] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)
    commits: int = 0
    frame_inserts: int = 0

    def take(self) -> None:
        for connection in self.connections:
            self._read([entry["sql"] for entry in connection.queries_log])

    def _read(self, log: list[str]) -> None:
        inside, ours = False, 0
        for sql in log:
            word = sql.lstrip().upper()
            if word.startswith("BEGIN"):
                inside, ours = True, 0
            elif word.startswith("COMMIT"):
                inside, self.commits = False, self.commits + (ours > 0)
            elif not word.startswith(BOUNDARIES):
                if FRAMES in sql:
                    self.frame_inserts += word.startswith(("INSERT", "WITH"))
                    continue
                self.statements.append(sql)
                ours += 1
                self.commits += not inside  # a statement of its own commits by itself


@contextmanager
def counting() -> Iterator[Counted]:
    """Count what this thread and every thread of the agent sends from here on."""
    counted = Counted()

    def watch(connection: BaseDatabaseWrapper, **_: object) -> None:
        connection.force_debug_cursor = True
        if connection not in counted.connections:
            counted.connections.append(connection)

    close_threads()  # the next use makes connections anew, where we see them
    connection_created.connect(watch)
    here = connections["default"]
    here.queries_log.clear()
    watch(here)
    try:
        yield counted
        counted.take()
    finally:
        connection_created.disconnect(watch)
        here.force_debug_cursor = False


def test_a_turn_with_a_read_tool_takes_few_statements_and_few_commits(site: Callable[..., Site]) -> None:
    words = "word " * 200
    desk = site([ScriptedReply(words, calls=[call("look_up_order", number=1042)]), words])

    @tool
    def look_up_order(number: int) -> str:
        """Where an order is."""
        return f"{number} was shipped"

    agent(name="shop", prompt="Help.", tools=[look_up_order])(type("Shop", (), {}))
    with counting() as counted:
        run = desk.turn("where is order 1042?")
    assert run.status == "completed"
    listed = "\n".join(counted.statements)
    # MySQL and MariaDB cannot answer what an UPDATE wrote: a read more for the claim and for each recorded unit
    most = 28 if connections["default"].vendor != "mysql" else 33
    assert len(counted.statements) - 1 <= most, listed  # the last one reads the run for this test
    assert counted.commits - 1 <= 6, listed
    assert counted.frame_inserts <= 8
    assert "word word" in desk.messages(run.thread_id)[-1].content


def test_an_approved_proposal_is_executed_and_told_in_two_commits(site: Callable[..., Site]) -> None:
    desk = Desk(site(scripted, **SETTINGS))
    declare(desk)
    run, proposal = desk.asked()
    proposals.approve(LEAD, proposal.id)
    with counting() as counted:
        assert run_async(execution.execute_next)
    listed = "\n".join(counted.statements)
    assert (len(desk.told(run)), len(desk.refunds)) == (1, 1)
    # MySQL and MariaDB cannot answer what an UPDATE wrote: a read more for the message's number
    assert len(counted.statements) <= (11 if connections["default"].vendor != "mysql" else 12), listed
    assert counted.commits == 2, listed  # its start, before the tool runs; its end, and the words in the thread
