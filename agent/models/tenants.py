"""Rows by the tenants that somebody may see."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Q

Tenants = Collection[str | None] | None  # None: all of them; a None among them: rows without a tenant


def within(tenants: Tenants, column: str = "tenant_ref") -> Q:
    """Rows of these tenants; of all of them for None, of nobody for an empty list."""
    if tenants is None:
        return Q()
    named = Q(**{f"{column}__in": [tenant for tenant in tenants if tenant is not None]})
    return named | Q(**{f"{column}__isnull": True}) if None in tenants else named
