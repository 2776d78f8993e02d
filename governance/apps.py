"""The app that reads: what it cost, whether it worked."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class GovernanceConfig(AppConfig):
    name = "governance"
    verbose_name = _("Governance")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """What registers itself, and needs the models that this file comes before."""
        import_module("governance.checks")
        import_module("governance.upkeep")
