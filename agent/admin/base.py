"""A table that can be read in any admin site and changed in none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db import models
from django.db.models import Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils import formats
from django.utils.html import format_html_join
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agent.admin.columns import Column, Named
from agent.admin.scope import scope_of
from agent.models.tenants import Tenants, within

if TYPE_CHECKING:
    BasePaginator = Paginator[models.Model]
    BaseAdmin = admin.ModelAdmin[models.Model]
else:
    BasePaginator = Paginator
    BaseAdmin = admin.ModelAdmin

Rows = models.QuerySet[models.Model]
READ_TEXT = "governance.view_conversations"
LISTED = 10_000  # rows that a list leads to: further ones are found by searching

Shown = Column | Named


class BoundedPaginator(BasePaginator):
    """Counts no further than it leads, so that a page of a table costs the same at any size."""

    @cached_property
    def capped(self) -> bool:
        return self._seen > LISTED

    @cached_property
    def count(self) -> int:
        return min(self._seen, LISTED)

    @cached_property
    def _seen(self) -> int:
        rows: Rows = self.object_list  # type: ignore[assignment]
        return rows.order_by()[: LISTED + 1].count()


class BoundedChangeList(ChangeList):
    """Ordered by an index and by nothing else, and reads only the columns that it shows."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        labels = [
            capfirst(str(field.verbose_name))
            for field in self.opts.concrete_fields
            if field.attname in self.search_fields
        ]
        self.search_help_text = gettext("The whole value of one of: %(columns)s") % {"columns": ", ".join(labels)}
        if getattr(self.paginator, "capped", False):
            self.title = gettext("%(name)s: the first %(count)s of more") % {
                "name": capfirst(str(self.opts.verbose_name_plural)),
                "count": formats.number_format(LISTED),
            }

    def get_ordering(self, request: HttpRequest, queryset: Rows) -> list[Any]:
        return [*self.model_admin.get_ordering(request)]

    def get_ordering_field_columns(self) -> dict[int, Any]:
        return {}

    def get_queryset(self, request: HttpRequest, exclude_parameters: list[str | None] | None = None) -> Rows:
        return super().get_queryset(request, exclude_parameters).only(*self._columns())

    def _columns(self) -> Iterable[str]:
        yield self.opts.pk.attname
        for shown in self.list_display:
            yield from shown.reads  # type: ignore[union-attr]


class ReadOnlyAdmin(BaseAdmin):
    """The rows of a table for those who may view it; its text for those who may read conversations as well."""

    # Columns made of what people and models said; and columns that the list shows, by name or worked out.
    text: ClassVar[frozenset[str]] = frozenset()
    columns: ClassVar[Sequence[str | Named]] = ()
    opened_by: ClassVar[Sequence[str]] = ()  # permissions of another meaning that open the table too
    tenant: ClassVar[str] = ""  # where it stands whose a row is, when not in its own `tenant_ref`
    stand_ins: ClassVar[Mapping[str, Named]] = {}  # shown in place of a column of text
    # Tables with rows that belong to a row of this one: which, and by which of its columns.
    related: ClassVar[Sequence[tuple[type[models.Model], str]]] = ()

    actions = None
    list_per_page = 100
    list_max_show_all = 0
    ordering: ClassVar[tuple[str, ...]] = ("-pk",)
    search_fields: ClassVar[tuple[str, ...]] = ()
    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    sortable_by = ()

    class Media:
        css: ClassVar = {"all": ["agent/admin.css"]}

    def __init__(self, model: type[models.Model], admin_site: admin.AdminSite) -> None:
        super().__init__(model, admin_site)
        self._column = {field.attname: Column(field, admin_site) for field in model._meta.concrete_fields}
        self._listed: list[Shown] = [self._column[one] if isinstance(one, str) else one for one in self.columns]
        self.list_display = [*self._listed]

    # ---- who may ------------------------------------------------------------------------------------------------

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Django's permission to view this model, or the one that the table is opened by as well."""
        own = f"{self.opts.app_label}.view_{self.opts.model_name}"
        return any(request.user.has_perm(name) for name in (own, *self.opened_by))

    def has_module_permission(self, request: HttpRequest) -> bool:
        return super().has_module_permission(request) or self.has_view_permission(request)

    # ---- what is shown ------------------------------------------------------------------------------------------

    def get_list_display(self, request: HttpRequest) -> list[Shown]:  # type: ignore[override]
        return self._open_to(request, self._listed)

    def get_fields(self, request: HttpRequest, obj: models.Model | None = None) -> list[Any]:
        shown: list[Any] = self._open_to(request, self._column.values())
        links = [one for one in self.related if self._viewable(request, one[0])]
        if obj is not None and links:
            shown.append(Named("related", _("related"), lambda row: self._links(row, links)))
        return shown

    def get_readonly_fields(self, request: HttpRequest, obj: models.Model | None = None) -> list[Any]:
        return self.get_fields(request, obj)

    def _open_to(self, request: HttpRequest, columns: Iterable[Shown]) -> list[Shown]:
        """Without the permission a column of text is left out, or what stands for it is shown."""
        if request.user.has_perm(READ_TEXT):
            return list(columns)
        shown = (self.stand_ins.get(one.__name__) if self._is_text(one) else one for one in columns)
        return [one for one in shown if one is not None]

    def _is_text(self, shown: Shown) -> bool:
        return not self.text.isdisjoint(shown.reads)

    def _viewable(self, request: HttpRequest, model: type[models.Model]) -> bool:
        if not self.admin_site.is_registered(model):
            return False
        return self.admin_site.get_model_admin(model).has_view_permission(request)

    def _links(self, row: models.Model, links: Iterable[tuple[type[models.Model], str]]) -> str:
        return format_html_join(
            ", ",
            '<a href="{}?{}={}">{}</a>',
            ((self._list_of(model), name, row.pk, capfirst(model._meta.verbose_name_plural)) for model, name in links),
        )

    def _list_of(self, model: type[models.Model]) -> str:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"
        return reverse(name, current_app=self.admin_site.name)

    # ---- what is found ------------------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> Rows:
        """The rows of the tenants that this request may see: any other one is unknown, in the list and as a page."""
        return super().get_queryset(request).filter(self.of_tenants(scope_of(request)))

    def of_tenants(self, tenants: Tenants) -> Q:
        """Rows of which it cannot be said whose they are, are for those alone who may see every tenant's."""
        column = self.tenant or ("tenant_ref" if "tenant_ref" in self._column else "")
        return within(tenants, column) if column or tenants is None else Q(pk__in=[])

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[ChangeList]:
        return BoundedChangeList

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Whole values of searchable columns, and the filters: anything else could be asked about hidden text."""
        filters = {getattr(one, "parameter_name", None) for one in self.list_filter}
        return lookup.removesuffix("__exact") in self.search_fields or lookup in filters

    def get_search_results(self, request: HttpRequest, queryset: Rows, search_term: str) -> tuple[Rows, bool]:
        """Rows that hold the whole term in one of the columns; never a part, never a word of a text."""
        if not search_term:
            return queryset, False
        found = Q(pk__in=[])
        for name in self.search_fields:
            found |= self._holding(str(name), search_term)
        return queryset.filter(found), False

    def _holding(self, name: str, term: str) -> Q:
        field: models.Field[Any, Any] = self.model._meta.get_field(name)  # type: ignore[assignment]
        values = set()
        for text in (term, term.strip()):
            with suppress(ValidationError):
                values.add(field.to_python(text))
        return Q(**{f"{name}__in": values})


class WordFilter(admin.SimpleListFilter):
    """The rows with one word in a column; the words are known, so the table is not asked for them."""

    words: ClassVar[Iterable[str]] = ()

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:  # noqa: ANN401  any table's
        return [(str(word), str(word)) for word in self.words]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        word = self.value()
        return queryset if word is None else queryset.filter(**{str(self.parameter_name): word})
