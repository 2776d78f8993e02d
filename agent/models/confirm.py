"""Confirm tokens that were used: each can be claimed once."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from agent.models.fields import HASH, NAME, REF, ExactCharField


class ConfirmTokenQuerySet(models.QuerySet["ConfirmToken"]):
    def expired(self, now_ms: int) -> Self:
        return self.filter(expires_at_ms__lte=now_ms)


class ConfirmToken(models.Model):
    """The hash of a token that was claimed; the token itself is never stored."""

    hash = ExactCharField(_("hash"), max_length=HASH, primary_key=True)
    actor_ref = ExactCharField(_("actor"), max_length=REF)
    tool = ExactCharField(_("tool"), max_length=NAME)
    expires_at_ms = models.BigIntegerField(_("expires at (ms)"))
    created_at_ms = models.BigIntegerField(_("created at (ms)"))

    objects = ConfirmTokenQuerySet.as_manager()

    class Meta:
        db_table = "agent_confirm_token"
        verbose_name = _("confirm token")
        verbose_name_plural = _("confirm tokens")
        indexes = [
            models.Index(fields=["expires_at_ms"], name="agent_confirm_expires_ix"),
        ]

    def __str__(self) -> str:
        return self.hash
