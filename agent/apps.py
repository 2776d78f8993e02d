"""The app that writes: threads, runs, tools, proposals and the ledger."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _


class AgentConfig(AppConfig):
    name = "agent"
    verbose_name = _("Agent")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Import every app's `agents` module. Every command comes through here, so nothing is started."""
        autodiscover_modules("agents")
        for name in ("checks", "database_checks"):  # they register themselves, and need the models
            import_module(f"agent.{name}")
