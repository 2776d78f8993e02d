"""One screen of the console: an entry of any admin site whose page is made of parts, each with a query of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, URLPattern, path, reverse

from agent.admin.scope import scope_of
from agent.errors import AgentError, Invalid, NotAllowed, NotFound
from governance.admin.console.asked import LABELS, Asked, presets
from governance.admin.console.names import Names
from governance.admin.console.navigation import SCREENS, screens_of
from governance.export import Export, csv_response
from governance.permissions import EXPORT, TEXT, hidden_costs
from governance.queries.selection import Selection
from governance.reading import one_view

if TYPE_CHECKING:
    BaseAdmin = admin.ModelAdmin[models.Model]
else:
    BaseAdmin = admin.ModelAdmin

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """Who looks at a page, and what at."""

    request: HttpRequest
    asked: Asked
    site: str  # the name of the admin site
    selection: Selection
    names: Names = field(default_factory=Names)

    def may(self, permission: str) -> bool:
        return self.request.user.has_perm(permission)

    def url(self, screen: str, *args: str) -> str:
        """The address of a screen; none where the site has it not."""
        try:
            return reverse(f"admin:governance_{screen}", args=args, current_app=self.site)
        except NoReverseMatch:
            return ""

    def csv(self, table: str) -> str:
        """Where this view's table is to be had as a file, for who may take it along."""
        return self.asked.query(format="csv", table=table) if self.may(EXPORT) else ""

    def raw(self, model: str, pk: str) -> str:
        """The page of a stored row in the plain admin, for who may view that table."""
        app, _, name = model.partition("_")
        if not self.may(f"{app}.view_{name}"):
            return ""
        try:
            return reverse(f"admin:{model}_change", args=[quote(pk)], current_app=self.site)
        except NoReverseMatch:
            return ""

    def to(self, screen: str, **changes: str | None) -> str:
        """The same days and filters on another screen."""
        url = self.url(screen)
        return url and url + self.asked.elsewhere(**changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A part that could not be read; the others are shown."""

    retry: str


Load = Callable[[Visit], object]
Tabled = Callable[[Visit], tuple[type, Iterable[object]]]


class Screen(BaseAdmin):
    """A page for who has one of its permissions; there is nothing to add, change or delete."""

    page: ClassVar[str]  # of the url name
    template: ClassVar[str] = "governance/console/list.html"
    tables: ClassVar[Mapping[str, Tabled]] = {}  # what of it can be exported: the type of a row, and all rows
    own: ClassVar[Sequence[str]] = ()  # parameters that only this screen has
    dated: ClassVar[bool] = True  # whether days choose what is on it
    slow: ClassVar[frozenset[str]] = frozenset()  # filters that no daily summary tells apart
    filters: ClassVar[Sequence[str]] = tuple(LABELS)

    # ---- who may ------------------------------------------------------------------------------------------------

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return any(request.user.has_perm(permission) for permission in SCREENS[self.page].opened_by)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    # ---- the page -----------------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        """Both names lead to the page: the console's own, and the one that the admin's index links to."""
        view = self.admin_site.admin_view(self.view)
        return [
            path("", view, name=f"governance_{self.page}"),
            path("", view, name=f"governance_{self.opts.model_name}_changelist"),
        ]

    def view(self, request: HttpRequest) -> HttpResponseBase:
        return self.answered(request, self._page)

    def _page(self, visit: Visit) -> HttpResponseBase:
        if visit.request.method == "POST":
            return self.post(visit)
        if visit.request.GET.get("format") == "csv":
            return self.export(visit)
        return self.show(visit, self.template, self.parts(visit))

    def answered(self, request: HttpRequest, page: Callable[[Visit], HttpResponseBase]) -> HttpResponseBase:
        """A page for who may; what the address asks in vain is said in words."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        try:
            return page(self.visit(request))
        except Invalid as error:
            return self.refuse(request, error)
        except NotFound:
            raise Http404 from None
        except NotAllowed as error:
            raise PermissionDenied(error.message) from None

    def visit(self, request: HttpRequest) -> Visit:
        asked = Asked.of(request.GET.dict(), self.own)
        selection = asked.selection(scope_of(request), text=request.user.has_perm(TEXT))
        return Visit(request=request, asked=asked, site=self.admin_site.name, selection=selection)

    def export(self, visit: Visit) -> HttpResponseBase:
        """One table of this page as a file: the same days, filters and order, all of its pages."""
        if not visit.may(EXPORT):
            raise PermissionDenied
        name = visit.request.GET.get("table", next(iter(self.tables), ""))
        if name not in self.tables:
            raise Invalid.field("table", f"one of {', '.join(self.tables)}")
        kind, rows = self.tables[name](visit)
        asked = visit.request.GET.urlencode()
        export = Export(by=str(visit.request.user.pk), screen=f"{self.page}-{name}", asked=asked)
        return csv_response(visit.request, export, kind, rows, without=hidden_costs(visit.request))

    def post(self, visit: Visit) -> HttpResponseBase:
        """What a form of this page asks for; most have none."""
        return HttpResponseNotAllowed(["GET", "HEAD"])

    def parts(self, visit: Visit) -> Mapping[str, Load]:
        """The parts of the page by name, each of which may fail without the others."""
        raise NotImplementedError

    def show(
        self,
        visit: Visit,
        template: str,
        parts: Mapping[str, Load],
        *,
        status: int = 200,
        title: str = "",
        bars: bool = True,
    ) -> HttpResponse:
        """The page with its parts, all of one moment; without bars where days and filters choose nothing."""
        with one_view():
            shown = {name: tried(partial(load, visit), name, visit.request) for name, load in parts.items()}
        context = {
            **self.chrome(visit.request, title),
            "asked": visit.asked,
            "presets": list(presets(visit.asked)) if bars and self.chosen_by_days(visit) else (),
            "filter_bar": list(self.filter_bar(visit)) if bars else (),
            "slow": not self.slow.isdisjoint(visit.asked.filters),
            **shown,
        }
        return TemplateResponse(visit.request, template, context, status=status)

    def refuse(self, request: HttpRequest, error: Invalid) -> HttpResponse:
        """Say what of the address is not understood, and lead back."""
        context = {**self.chrome(request), "error": error, "back": request.path}
        return TemplateResponse(request, "governance/console/refused.html", context, status=400)

    def chrome(self, request: HttpRequest, title: str = "") -> dict[str, object]:
        """What stands around every page of the console."""
        request.current_app = self.admin_site.name
        return {
            **self.admin_site.each_context(request),
            "title": title or SCREENS[self.page].label,
            "opts": self.opts,
            "screens": screens_of(request, self.admin_site.name, here=self.page),
        }

    def chosen_by_days(self, visit: Visit) -> bool:
        """Whether the days choose what is on this page."""
        return self.dated

    def filter_bar(self, visit: Visit) -> Iterable[dict[str, object]]:
        """The filters of this page with what is asked for, and the address without each."""
        for name in self.filters:
            value = visit.asked.filters.get(name, "")
            without = visit.asked.query(**{name: None})
            yield {"name": name, "label": LABELS[name], "value": value, "without": without}


def tried(load: Callable[[], object], name: str, request: HttpRequest) -> object:
    """What a part says, or that it failed; then the transaction of a request goes on as if it had not been asked."""
    try:
        with transaction.atomic() if transaction.get_connection().in_atomic_block else nullcontext():
            return load()
    except (AgentError, PermissionDenied):
        raise
    except Exception:
        logger.exception("The console could not read %s of %s", name, request.path)
        return Failed(retry=request.get_full_path())
