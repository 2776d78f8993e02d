"""The app that writes: threads, runs, tools, proposals and the ledger."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AgentConfig(AppConfig):
    name = "agent"
    verbose_name = _("Agent")
    default_auto_field = "django.db.models.BigAutoField"
