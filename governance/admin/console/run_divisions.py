"""Runs divided: by agent, or by the prompt that they were begun with."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agent.errors import Invalid
from governance.admin.console import words
from governance.admin.console.base import Visit
from governance.admin.console.cells import time_cell
from governance.admin.console.parts import Cell, Head, Row, Tab, Table
from governance.queries.prompts import PromptRuns, runs_by_prompt
from governance.queries.records import AgentRuns
from governance.queries.runs import runs_by_agent
from governance.queries.selection import NONE

DIVISIONS = {"agent": _("By agent"), "prompt": _("By prompt")}


def _by(visit: Visit) -> str:
    name = visit.asked.own.get("by", "agent")
    if name not in DIVISIONS:
        raise Invalid.field("by", f"one of {', '.join(DIVISIONS)}")
    return name


def tabs(visit: Visit) -> Sequence[Tab]:
    chosen = _by(visit)
    return [
        Tab(label=label, query=visit.asked.query(by=name) + "#by", chosen=name == chosen)
        for name, label in DIVISIONS.items()
    ]


def divided(visit: Visit) -> Table | None:
    if _by(visit) == "agent":
        return _agents(visit, runs_by_agent(visit.selection))
    return _prompts(visit, runs_by_prompt(visit.selection))


def _prompts(visit: Visit, rows: Sequence[PromptRuns]) -> Table | None:
    if not rows:
        return None
    figures = (_("runs"), _("finished"), _("failed"), _("success"))
    return Table(
        caption=_("By prompt"),
        heads=[
            Head(label=_("prompt")),
            Head(label=_("agent")),
            Head(label=_("first seen")),
            *(Head(label=label, number=True) for label in figures),
        ],
        rows=[
            Row(
                cells=[
                    _prompt(visit, row),
                    Cell(text=row.agent_name or gettext("(default)")),
                    time_cell(row.first_at),
                    Cell(text=words.number(row.runs)),
                    Cell(text=words.number(row.completed)),
                    Cell(text=words.number(row.failed)),
                    Cell(text=words.rate(row.success_rate)),
                ]
            )
            for row in rows
        ],
        csv=visit.csv("prompts"),
        note=gettext("The newest first, counted from single runs."),
    )


def _prompt(visit: Visit, row: PromptRuns) -> Cell:
    shown = row.prompt_hash or NONE
    href = visit.asked.query(promptHash=shown) + "#list"
    return Cell(text=shown[:8], title=shown, href=href)


def _agents(visit: Visit, rows: Sequence[AgentRuns]) -> Table | None:
    if not rows:
        return None
    figures = (_("runs"), _("finished"), _("failed"), _("cancelled"), _("success"), _("retries"))
    return Table(
        caption=_("By agent"),
        heads=[Head(label=_("agent")), *(Head(label=label, number=True) for label in figures)],
        rows=[
            Row(
                cells=[
                    Cell(
                        text=row.agent_name or gettext("(default)"),
                        href=visit.asked.query(agent=NONE if row.agent_name is None else row.agent_name),
                    ),
                    Cell(text=words.number(row.runs)),
                    Cell(text=words.number(row.completed)),
                    Cell(text=words.number(row.failed)),
                    Cell(text=words.number(row.cancelled)),
                    Cell(text=words.rate(row.success_rate)),
                    Cell(text=words.number(row.retries)),
                ]
            )
            for row in rows
        ],
        csv=visit.csv("agents"),
    )
