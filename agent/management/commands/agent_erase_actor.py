"""Erase what somebody said; what it cost stays."""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agent.errors import AgentError
from agent.flows.erasure import erase_actor


class Command(BaseCommand):
    help = (
        "Empty every text of a person (titles, messages, calls, runs, proposals), remove their memories, uploads, "
        "queue, summaries, journals and streams, and delete their conversations softly. Rows, refs, times and figures "
        "stay: every total is the same. Refused while a run or an action of theirs is open; may be repeated."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("ref", metavar="REF", help="the person, as the ledger names them (actor_ref)")
        parser.add_argument("--noinput", action="store_false", dest="interactive", help="do not ask")

    def handle(self, *args: object, ref: str, interactive: bool, **options: object) -> None:
        if not ref:
            raise CommandError("REF: nobody has an empty one.")
        if interactive and input(f"Erase for good what {ref!r} said? [yes/no] ").strip() != "yes":
            raise CommandError("Nothing was erased.")
        try:
            done = erase_actor(ref)
        except AgentError as error:
            raise CommandError(error.message) from error
        self.stdout.write(
            f"{done.threads} conversations, {done.runs} runs, {done.proposals} proposals emptied; "
            f"{done.files} files removed."
        )
