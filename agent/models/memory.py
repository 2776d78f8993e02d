"""Facts that agents remember beyond a thread."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from agent.domain.ids import new_id
from agent.domain.memories import own_scope
from agent.models.fields import ID, NAME, REF, WORD, CleanTextField, ExactCharField


class MemoryFactQuerySet(models.QuerySet["MemoryFact"]):
    def of_actor(self, actor_ref: str) -> Self:
        return self.filter(scope=own_scope(actor_ref))

    def told_first(self) -> Self:
        """Pinned ones, then those changed last."""
        return self.order_by("-pinned", "-updated_at", "id")


class MemoryFact(models.Model):
    """One fact under its key in a scope; a rewrite keeps its id, pin and creation time."""

    id = ExactCharField(max_length=ID, primary_key=True, default=new_id)
    scope = ExactCharField(_("scope"), max_length=300)
    key = ExactCharField(_("key"), max_length=NAME)
    text = CleanTextField(_("text"))
    origin_author = ExactCharField(_("author"), max_length=WORD)
    origin_thread_id = ExactCharField(_("thread"), max_length=ID, null=True)
    origin_run_id = ExactCharField(_("run"), max_length=ID, null=True)
    origin_actor_ref = ExactCharField(_("actor"), max_length=REF, null=True)
    pinned = models.BooleanField(_("pinned"), default=False)
    created_at = models.DateTimeField(_("created at"))
    updated_at = models.DateTimeField(_("updated at"))

    objects = MemoryFactQuerySet.as_manager()

    class Meta:
        db_table = "agent_memory"
        verbose_name = _("memory")
        verbose_name_plural = _("memories")
        constraints = [
            models.UniqueConstraint(fields=["scope", "key"], name="agent_memory_scope_key_uq"),
        ]

    def __str__(self) -> str:
        return self.id
