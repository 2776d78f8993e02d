"""The screens of the console as the admin knows them: one model each, without a table."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Screen(models.Model):
    """A page of the console: there is nothing to store, to add or to delete."""

    class Meta:
        abstract = True
        managed = False
        default_permissions = ()

    def __str__(self) -> str:
        return str(self._meta.verbose_name)


class Spend(Screen):
    """The console's first screen; it carries the permissions of the console."""

    class Meta(Screen.Meta):
        verbose_name = _("spend")
        verbose_name_plural = _("spend")
        permissions = [
            ("view_spend", "Can view spend"),
            ("view_reliability", "Can view reliability"),
            ("view_conversations", "Can view conversations"),
            ("export_governance", "Can export governance data"),
            ("reprice_usage", "Can reprice usage"),
        ]


class Usage(Screen):
    class Meta(Screen.Meta):
        verbose_name = _("usage row")
        verbose_name_plural = _("usage rows")


class Models(Screen):
    class Meta(Screen.Meta):
        verbose_name = _("model")
        verbose_name_plural = _("models")


class People(Screen):
    class Meta(Screen.Meta):
        verbose_name = _("person")
        verbose_name_plural = _("people")


class Threads(Screen):
    class Meta(Screen.Meta):
        verbose_name = _("conversation")
        verbose_name_plural = _("conversations")


class Runs(Screen):
    class Meta(Screen.Meta):
        verbose_name = _("run")
        verbose_name_plural = _("runs")


class Approvals(Screen):
    class Meta(Screen.Meta):
        verbose_name = _("approval")
        verbose_name_plural = _("approvals")


class Tools(Screen):
    class Meta(Screen.Meta):
        verbose_name = _("tool")
        verbose_name_plural = _("tools")


class Prices(Screen):
    class Meta(Screen.Meta):
        verbose_name = _("price")
        verbose_name_plural = _("prices")


class Live(Screen):
    class Meta(Screen.Meta):
        verbose_name = _("live")
        verbose_name_plural = _("live")
