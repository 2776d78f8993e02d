"""Runs for an operator: who has them in hand and how they go; one told as a story; and the way to stop it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar

from django.contrib import messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db import models
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from agent.admin import story
from agent.admin.base import READ_TEXT, ReadOnlyAdmin, Rows, WordFilter
from agent.admin.columns import EMPTY, Named, instant, link_to, preformatted
from agent.admin.durations import between, took
from agent.domain.states import OPEN_RUN, TERMINAL_RUN, RunStatus
from agent.flows.cancel import stop
from agent.models import Message, Run, RunStep, StreamFrame, Thread, ToolCall, UsageEntry

SEE_COSTS = "governance.view_spend"
CANCEL = "agent.cancel_run"
STEPS, CALLS, USAGE = 500, 200, 200  # rows that one page tells
SHOWN_TEXT = 4_000  # characters of a payload in the story; the whole is on the page of its row
LATELY = timedelta(days=7)


class RunStateFilter(WordFilter):
    """What an operator looks for. Open runs are few and found by an index; ended ones are looked for among the last."""

    title = _("status")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:  # noqa: ANN401  any table's
        return [
            ("open", gettext("open")),
            ("queued", gettext("waiting for a worker")),
            ("running", gettext("running")),
            ("silent", gettext("running, and the worker is silent")),
            ("waiting", gettext("waiting for a person")),
            ("failed", gettext("failed in the last 7 days")),
            ("cancelled", gettext("cancelled in the last 7 days")),
        ]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        state, now = self.value(), timezone.now()
        if state == "open":
            return queryset.filter(status__in=sorted(OPEN_RUN))
        if state == "silent":
            return queryset.filter(status=RunStatus.RUNNING, lease_expires_at__lte=now)
        if state in OPEN_RUN:
            return queryset.filter(status=state)
        if state in TERMINAL_RUN:
            return queryset.filter(status=state, settled_at__gte=now - LATELY)
        return queryset


NONE = format_html('<span class="agent-none">{}</span>', EMPTY)


def labelled(name: str, label: Any, show: Callable[[Any], str], *reads: str) -> Named:  # noqa: ANN401  lazy
    """A column that says what it is where a narrow screen has no heads."""

    def with_label(row: Any) -> str:  # noqa: ANN401  a row of the table
        value = show(row)
        return format_html('<span class="agent-label">{}</span> {}', label, value) if value else NONE

    return Named(name, label, with_label, *reads)


def _lasted(run: Run) -> str:
    if run.duration_ms is not None:
        return took(run.duration_ms)
    if run.settled_at is not None or run.started_at is None:
        return ""
    return gettext("%(time)s so far") % {"time": between(run.started_at, timezone.now())}


class RunAdmin(ReadOnlyAdmin):
    text = frozenset({"input", "error_message"})
    columns = (
        "id",
        labelled("status", _("status"), lambda run: run.status, "status"),
        labelled("agent", _("agent"), lambda run: run.agent_name or "", "agent_name"),
        labelled("actor", _("actor"), lambda run: run.actor_ref, "actor_ref"),
        labelled("lease", _("worker"), lambda run: story.lease(run, timezone.now()), "lease_owner", "lease_expires_at"),
        labelled("tries", _("tries"), story.tries, "attempt", "recoveries", "retries"),
        labelled("admitted", _("admitted"), lambda run: instant(run.created_at), "created_at"),
        labelled("lasted", _("took"), _lasted, "duration_ms", "started_at", "settled_at"),
        labelled("error", _("error"), lambda run: run.error_code or "", "error_code"),
    )
    search_fields = ("id", "thread_id", "actor_ref", "tenant_ref", "parent_run_id")
    list_filter = (RunStateFilter,)
    related = (
        (Run, "parent_run_id"),
        (Message, "run_id"),
        (ToolCall, "run_id"),
        (UsageEntry, "run_id"),
        (RunStep, "run_id"),
        (StreamFrame, "run_id"),
    )
    change_form_template: ClassVar[str] = "agent/admin/run.html"

    # ---- the story ----------------------------------------------------------------------------------------------

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:  # noqa: ANN401
        run = kwargs.get("obj") or context["original"]
        return super().render_change_form(request, {**context, **self._story(request, run)}, *args, **kwargs)

    def _story(self, request: HttpRequest, run: Run) -> dict[str, Any]:
        texts, costs, now = request.user.has_perm(READ_TEXT), request.user.has_perm(SEE_COSTS), timezone.now()
        rows = rows_of(run, texts=texts)
        return {
            "headline": story.headline(run, now),
            "facts": self._facts(run, now),
            "totals": story.totals(rows, costs=costs),
            "moments": story.moments(run, rows, costs=costs),
            "cut": rows.cut,
            "cancel_url": self._url("cancel", run.pk) if self._may_cancel(request, run) else None,
        }

    def _facts(self, run: Run, now: Any) -> list[tuple[str, str]]:  # noqa: ANN401  an instant
        told = [
            (gettext("Agent"), run.agent_name or gettext("(default)")),
            (gettext("Model"), run.model_id or ""),
            (gettext("Person"), run.actor_ref),
            (gettext("Conversation"), link_to(self.admin_site, Thread, run.thread_id)),
            (gettext("Asked by"), link_to(self.admin_site, Run, run.parent_run_id) if run.parent_run_id else ""),
            (gettext("Waited for a worker"), between(run.created_at, run.started_at) if run.started_at else ""),
            (gettext("Worker"), story.lease(run, now)),
            (gettext("Tries"), story.tries(run)),
            (gettext("Prompt"), (run.prompt_hash or "")[:8]),
        ]
        return [(label, value) for label, value in told if value]

    # ---- stopping it --------------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.cancel_view)
        return [path("<path:object_id>/cancel/", view, name="agent_run_cancel"), *super().get_urls()]

    @method_decorator(require_http_methods(["GET", "HEAD", "POST"]))
    def cancel_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask before a run is stopped, and stop it."""
        if not (self.has_view_permission(request) and request.user.has_perm(CANCEL)):
            raise PermissionDenied
        run = self.get_object(request, unquote(object_id))
        if not isinstance(run, Run):
            return HttpResponseRedirect(reverse("admin:index", current_app=self.admin_site.name))
        back = HttpResponseRedirect(self._url("change", run.pk))
        if request.method == "POST":
            self._stop(request, run)
            return back
        if run.status in TERMINAL_RUN:
            self._tell_end(request, run)
            return back
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Stop this run?"),
            "opts": self.opts,
            "object": run,
            "media": self.media,
            "headline": story.headline(run, timezone.now()),
            "running": run.status == RunStatus.RUNNING,
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "agent/admin/cancel_run.html", context)

    def _stop(self, request: HttpRequest, run: Run) -> None:
        stopped = stop(run.pk)
        now = Run.objects.get(pk=run.pk)
        if not stopped and now.status != RunStatus.CANCELLED:
            self._tell_end(request, now)
            return
        if now.status == RunStatus.CANCELLED:
            told = gettext("The run was cancelled.")
        else:
            told = gettext("The run was asked to stop: its worker does so at its next border.")
        self.log_change(request, run, told)
        self.message_user(request, told, messages.SUCCESS)

    def _tell_end(self, request: HttpRequest, run: Run) -> None:
        told = gettext("The run was over before it could be stopped: %(status)s.") % {"status": run.status}
        self.message_user(request, told, messages.WARNING)

    def _may_cancel(self, request: HttpRequest, run: Run) -> bool:
        return run.status in OPEN_RUN and request.user.has_perm(CANCEL)

    def _url(self, act: str, pk: str) -> str:
        return reverse(f"admin:agent_run_{act}", args=[quote(pk)], current_app=self.admin_site.name)


def rows_of(run: Run, *, texts: bool) -> story.Rows:
    """Three reads; payloads, arguments and results only for who may read them, and of each its beginning."""
    steps = _beginnings(RunStep.objects.filter(run=run).in_order(), ("payload",) if texts else (), STEPS)
    calls = _beginnings(ToolCall.objects.of_run(run.pk).order_by("created_at", "pk"), OF_CALL if texts else (), CALLS)
    usage = list(UsageEntry.objects.filter(run_id=run.pk).order_by("pk")[: USAGE + 1])
    said = {step.name: _said(step, ("payload",)) for step in steps if texts}
    said |= {call.pk: _said(call, OF_CALL) for call in calls if texts}
    if texts and run.error_message:
        said[story.ERROR] = ((gettext("error"), preformatted(run.error_message)),)
    cut = len(steps) > STEPS or len(calls) > CALLS or len(usage) > USAGE
    return story.Rows(steps=steps[:STEPS], calls=calls[:CALLS], usage=usage[:USAGE], said=said, cut=cut)


OF_CALL = ("input", "output", "error")
TEXTS: Mapping[type[models.Model], tuple[str, ...]] = {
    RunStep: ("payload",),
    ToolCall: (*OF_CALL, "answers", "confirmation", "decision_reason"),
}


def _beginnings(rows: Any, shown: Sequence[str], most: int) -> list[Any]:  # noqa: ANN401  of either table
    """The first rows without their texts, and the beginning of those that are shown as `begin_<column>`."""
    as_text = models.TextField()
    begin = {f"begin_{name}": Left(name, SHOWN_TEXT + 1, output_field=as_text) for name in shown}
    return list(rows.defer(*TEXTS[rows.model]).annotate(**begin)[: most + 1])


def _said(row: models.Model, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    told = []
    for name in names:
        text: str | None = getattr(row, f"begin_{name}")
        if text and text != "null":
            label = str(row._meta.get_field(name).verbose_name)  # type: ignore[union-attr]
            more = text[:SHOWN_TEXT] + " …" if len(text) > SHOWN_TEXT else text
            told.append((label, preformatted(more)))
    return tuple(told)
