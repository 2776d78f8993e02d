"""What a client's Idempotency-Key was answered."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from agent.domain.ids import new_id
from agent.models.fields import HASH, ID, REF, ExactCharField, JsonTextField


class IdempotencyKeyQuerySet(models.QuerySet["IdempotencyKey"]):
    def made_before(self, instant: datetime) -> Self:
        return self.filter(created_at__lt=instant)


class IdempotencyKey(models.Model):
    """One key of one actor: the body it stood for, and the answer it got."""

    id = ExactCharField(max_length=ID, primary_key=True, default=new_id)
    actor_ref = ExactCharField(_("actor"), max_length=REF)
    key = ExactCharField(_("key"), max_length=REF)
    fingerprint = ExactCharField(_("fingerprint"), max_length=HASH)
    thread_id = ExactCharField(_("thread"), max_length=ID, null=True)
    run_id = ExactCharField(_("run"), max_length=ID, null=True)
    message_id = ExactCharField(_("message"), max_length=ID, null=True)
    outcome = JsonTextField(_("outcome"))
    created_at = models.DateTimeField(_("created at"))

    objects = IdempotencyKeyQuerySet.as_manager()

    class Meta:
        db_table = "agent_idempotency_key"
        verbose_name = _("idempotency key")
        verbose_name_plural = _("idempotency keys")
        constraints = [
            models.UniqueConstraint(fields=["actor_ref", "key"], name="agent_idempotency_actor_key_uq"),
        ]

    def __str__(self) -> str:
        return self.id
