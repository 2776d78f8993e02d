"""A run told from its rows: what happened when, who has it in hand, what it cost. Words only; `runs` reads the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.utils import formats
from django.utils.translation import gettext, ngettext

from agent.admin.columns import usd
from agent.admin.durations import between, took
from agent.domain.states import TERMINAL_RUN, RunStatus, TokensSource, ToolCallStatus
from agent.models import Run, RunStep, ToolCall, UsageEntry

ERROR = "error"  # the run's own text, among those of its steps and calls
LONGEST_NAME = 32  # of the last part of a step's name, which may be an id
EFFECTS = frozenset({"llm", "history"})  # steps that something outside was waited for
LOUD = frozenset({"llm", "tool", "history", "regenerate", "await"})  # the others keep the books


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One line of the story. `name` is the journal's own; `quiet` ones only keep the books."""

    at: datetime
    what: str
    name: str = ""
    notes: tuple[str, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()  # what is shown to who may read conversations: label, text
    quiet: bool = False
    bad: bool = False
    short: str = ""  # the name with the end of its id
    after: str = ""  # the time since the run was admitted


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What belongs to a run, each in its own order; with texts or without."""

    steps: Sequence[RunStep]
    calls: Sequence[ToolCall]
    usage: Sequence[UsageEntry]
    said: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)  # texts, by step name or call id
    cut: bool = False  # there are more rows than were read


def headline(run: Run, now: datetime) -> str:
    """Where the run is, in one sentence."""
    since = between(run.started_at or run.created_at, run.settled_at or now)
    if run.status == RunStatus.COMPLETED:
        return gettext("Completed in %(time)s.") % {"time": since}
    if run.status == RunStatus.CANCELLED:
        return gettext("Cancelled after %(time)s.") % {"time": since}
    if run.status == RunStatus.FAILED:
        return gettext("Failed after %(time)s: %(code)s.") % {"time": since, "code": run.error_code or "run_failed"}
    if run.status == RunStatus.WAITING:
        return gettext("Waits for a person, or for an agent that it asked; no worker has it meanwhile.")
    if run.status == RunStatus.QUEUED:
        return gettext("Waits for a worker, for %(time)s now.") % {"time": between(run.created_at, now)}
    return _in_hand(run, since, now)


def _in_hand(run: Run, since: str, now: datetime) -> str:
    if run.lease_expires_at is None:
        return gettext("Running for %(time)s.") % {"time": since}
    if run.lease_expires_at <= now:
        silent = between(run.lease_expires_at, now)
        return gettext(
            "Its worker is silent: the lease ran out %(time)s ago. Recovery hands the run to another one."
        ) % {"time": silent}
    if run.cancel_requested_at is not None:
        asked = between(run.cancel_requested_at, now)
        return gettext("Asked to stop %(time)s ago; its worker does so at its next border.") % {"time": asked}
    return gettext("Running for %(time)s.") % {"time": since}


def lease(run: Run, now: datetime) -> str:
    """Who has the run, and for how long yet."""
    if run.lease_owner is None or run.lease_expires_at is None:
        return ""
    owner = run.lease_owner.rpartition(":")[0] or run.lease_owner  # without the random part
    if run.lease_expires_at <= now:
        ago = between(run.lease_expires_at, now)
        return gettext("%(owner)s, ran out %(time)s ago") % {"owner": owner, "time": ago}
    left = between(now, run.lease_expires_at)
    return gettext("%(owner)s, %(time)s left") % {"owner": owner, "time": left}


def tries(run: Run) -> str:
    """How often it was begun, by whom it was taken up, what had to be repeated: nothing when all went well."""
    told = []
    if run.attempt > 1:
        told.append(gettext("attempt %(count)s") % {"count": run.attempt})
    if run.recoveries:
        told.append(ngettext("%(n)s recovery", "%(n)s recoveries", run.recoveries) % {"n": run.recoveries})
    if run.retries:
        told.append(ngettext("%(n)s retry", "%(n)s retries", run.retries) % {"n": run.retries})
    return ", ".join(told)


def totals(rows: Rows, *, costs: bool) -> str:
    """What the whole run used; nothing before its first call of a model is over."""
    calls = len(rows.usage)
    if not calls:
        return ""
    told = [ngettext("%(n)s model call", "%(n)s model calls", calls) % {"n": formats.number_format(calls)}]
    told.append(_tokens(sum(row.input_tokens for row in rows.usage), sum(row.output_tokens for row in rows.usage)))
    return " · ".join([*told, *(_cost(rows.usage) if costs else ())])


def _cost(usage: Sequence[UsageEntry]) -> Iterator[str]:
    """What is known of it; what could not be priced is said, never counted as nothing."""
    priced = [row.cost_nanos for row in usage if row.cost_nanos is not None]
    if priced:
        yield "$" + usd(sum(priced), "")
    if unpriced := len(usage) - len(priced):
        yield ngettext("%(n)s call unpriced", "%(n)s calls unpriced", unpriced) % {"n": unpriced}


def moments(run: Run, rows: Rows, *, costs: bool) -> list[Moment]:
    """The run in order of time; rows of one transaction keep the order of their positions."""
    admitted = Moment(at=run.created_at, what=gettext("Admitted"), notes=(run.trigger,))
    told = [admitted, *_steps(rows, costs), *_apart(rows, costs), *_state(run, rows)]
    return [_dated(one, run.created_at) for one in sorted(told, key=lambda one: one.at)]


def _dated(one: Moment, start: datetime) -> Moment:
    verb, _, last = one.name.rpartition(":")
    short = f"{verb}:…{last[-8:]}" if len(last) > LONGEST_NAME else one.name
    return replace(one, after="+" + between(start, one.at), short=short)


def _steps(rows: Rows, costs: bool) -> Iterator[Moment]:
    calls = {call.id: call for call in rows.calls}
    spent = {row.step_key: row for row in rows.usage}
    before: datetime | None = None
    for step in rows.steps:
        call = calls.get(step.name.rpartition(":")[2])
        verb = step.name.partition(":")[0]
        notes = list(_spent(spent[step.name], costs)) if step.name in spent else []
        if verb in EFFECTS and before is not None and call is None:
            notes.append(gettext("took %(time)s") % {"time": between(before, step.created_at)})
        ended = call is not None and verb == "tool"
        yield Moment(
            at=step.created_at,
            what=_words(step.name, call),
            name=step.name,
            notes=(*notes, *(_outcome(call) if call is not None and ended else ())),
            texts=rows.said.get(call.id if call is not None and ended else step.name, ()),
            quiet=verb not in LOUD,
            bad=call is not None and call.status == ToolCallStatus.FAILED,
        )
        before = step.created_at


def _apart(rows: Rows, costs: bool) -> Iterator[Moment]:
    """What no step has recorded: calls of a model that broke off, calls of a tool that are not over."""
    known = {step.name for step in rows.steps}
    for row in rows.usage:
        if row.step_key not in known:
            what = gettext("A model call broke off") if "#" in (row.step_key or "") else gettext("Model call")
            notes = tuple(_spent(row, costs))
            yield Moment(at=row.created_at, what=what, name=row.step_key or "", notes=notes, bad=True)
    for call in rows.calls:
        if f"tool:{call.id}" not in known:
            what = gettext("Tool %(tool)s") % {"tool": call.tool_name}
            texts = rows.said.get(call.id, ())
            bad = call.status == ToolCallStatus.FAILED
            yield Moment(at=call.settled_at or call.created_at, what=what, notes=_outcome(call), texts=texts, bad=bad)


def _state(run: Run, rows: Rows) -> Iterator[Moment]:
    """Where it stands, and how it ended."""
    if run.cancel_requested_at is not None:
        yield Moment(at=run.cancel_requested_at, what=gettext("Asked to stop"))
    if run.effect_name is not None and run.status not in TERMINAL_RUN:
        at = rows.steps[-1].created_at if rows.steps else run.created_at
        yield Moment(at=at, what=gettext("Begun, and not recorded yet"), name=run.effect_name)
    if run.settled_at is not None:
        words = {
            RunStatus.COMPLETED: gettext("Completed"),
            RunStatus.FAILED: gettext("Failed"),
            RunStatus.CANCELLED: gettext("Cancelled"),
        }
        what = words.get(RunStatus(run.status), run.status) if run.status in TERMINAL_RUN else run.status
        notes = () if run.error_code is None else (run.error_code,)
        bad, texts = run.status == RunStatus.FAILED, rows.said.get(ERROR, ())
        yield Moment(at=run.settled_at, what=what, notes=notes, texts=texts, bad=bad)


def _spent(row: UsageEntry, costs: bool) -> Iterator[str]:
    yield row.model_id
    yield _tokens(row.input_tokens, row.output_tokens)
    if row.tokens_source == TokensSource.ESTIMATED:
        yield gettext("estimated")
    elif row.tokens_source == TokensSource.MISSING:
        yield gettext("nothing reported")
    if costs:
        yield gettext("unpriced") if row.cost_nanos is None else "$" + usd(row.cost_nanos, "")


def _tokens(given: int, made: int) -> str:
    counts = {"input": formats.number_format(given), "output": formats.number_format(made)}
    return gettext("%(input)s tokens in, %(output)s out") % counts


def _outcome(call: ToolCall) -> tuple[str, ...]:
    return (call.status, *([] if call.execution_ms is None else [took(call.execution_ms)]))


def _words(name: str, call: ToolCall | None) -> str:
    """A step in words; one that this release does not know has its name alone."""
    verb, _, rest = name.partition(":")
    if call is not None:
        if verb == "tool":
            return gettext("Tool %(tool)s") % {"tool": call.tool_name}
        if verb == "await":
            return gettext("What %(tool)s waited for is there") % {"tool": call.tool_name}
        return gettext("Call of %(tool)s recorded") % {"tool": call.tool_name}
    if verb == "llm" and rest.isdecimal():
        return gettext("Model call %(number)s") % {"number": int(rest) + 1}
    known = {
        "persist:user": gettext("Message stored"),
        "regenerate:truncate": gettext("Earlier answer withdrawn"),
        "persona:resolve": gettext("Persona read"),
        "load:thread": gettext("Conversation read"),
        "history:summarize": gettext("Older messages summarized"),
        "run:prompt-stages": gettext("Prompt put together"),
        "persist:run:start": gettext("Begun"),
        "intake:ask": gettext("Questions put before the first answer"),
        "intake:answers": gettext("Their answers stored"),
        "persist:title": gettext("Title given"),
        "deliver:detached": gettext("Answer put into the conversation that asked"),
        "persist:run:end": gettext("End recorded"),
    }
    if name in known:
        return known[name]
    families = {
        "persist:tool-outputs": gettext("Results stored"),
        "process:input": gettext("Prompt processed"),
        "process:output": gettext("Answer judged"),
        "structured": gettext("Answer brought into its form"),
        "followups": gettext("Follow-ups asked for"),
    }
    return next((words for family, words in families.items() if name.startswith(f"{family}:")), "")
