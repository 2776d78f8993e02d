"""Messages that wait until their thread is idle."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from agent.domain.ids import new_id
from agent.models.fields import ID, NAME, REF, CleanTextField, ExactCharField, JsonListField, JsonTextField
from agent.models.thread import Thread


class QueuedMessageQuerySet(models.QuerySet["QueuedMessage"]):
    def in_order(self) -> Self:
        return self.order_by("position", "id")


class QueuedMessage(models.Model):
    """A send that came while the thread was being answered; its id becomes the id of its run."""

    id = ExactCharField(max_length=ID, primary_key=True, default=new_id)
    thread = models.ForeignKey(Thread, models.CASCADE, db_index=False, related_name="queue", verbose_name=_("thread"))
    actor_ref = ExactCharField(_("owner"), max_length=REF)
    actor = JsonTextField(_("actor"))
    content = CleanTextField(_("content"))
    attachments = JsonListField(_("attachments"), null=True)
    agent_name = ExactCharField(_("agent"), max_length=NAME, null=True)
    persona = ExactCharField(_("persona"), max_length=NAME, null=True)
    model = ExactCharField(_("model"), max_length=NAME, null=True)
    page_context = JsonTextField(_("page context"), null=True)
    ui_capabilities = JsonTextField(_("client capabilities"), null=True)
    host_context = JsonTextField(_("host context"), null=True)
    interrupt = models.BooleanField(_("interrupt"), default=False)
    position = models.IntegerField(_("position"))
    created_at = models.DateTimeField(_("created at"))
    updated_at = models.DateTimeField(_("updated at"))

    objects = QueuedMessageQuerySet.as_manager()

    class Meta:
        db_table = "agent_queued_message"
        verbose_name = _("queued message")
        verbose_name_plural = _("queued messages")
        indexes = [
            models.Index(fields=["thread", "position"], name="agent_queue_thread_position_ix"),
        ]

    def __str__(self) -> str:
        return self.id
