"""The plain admin: every table, read-only, in any admin site (`register(site)` adds it to one more)."""

from __future__ import annotations

from django.contrib import admin

from agent.admin.screens import SCREENS

__all__ = ["SCREENS", "register"]


def register(site: admin.AdminSite) -> None:
    """Add the tables to a site."""
    for model, screen in SCREENS.items():
        site.register(model, screen)


register(admin.site)
