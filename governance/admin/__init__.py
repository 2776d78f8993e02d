"""The console and the plain admin of its tables, in any admin site (`register(site)` adds them to one more)."""

from __future__ import annotations

from django.contrib import admin

from governance.admin.console import CONSOLE
from governance.admin.screens import SCREENS

__all__ = ["CONSOLE", "SCREENS", "register"]


def register(site: admin.AdminSite) -> None:
    """Add the console and the tables to a site."""
    for model, screen in {**CONSOLE, **SCREENS}.items():
        site.register(model, screen)


register(admin.site)
