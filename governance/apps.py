"""The app that reads: what it cost, whether it worked."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class GovernanceConfig(AppConfig):
    name = "governance"
    verbose_name = _("Governance")
    default_auto_field = "django.db.models.BigAutoField"
