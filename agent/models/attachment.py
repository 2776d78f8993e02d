"""Files that were uploaded and not necessarily sent: the built-in staging store."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from agent.domain.ids import new_id
from agent.domain.states import StagingStatus
from agent.models.fields import ID, REF, WORD, CleanCharField, ExactCharField


class StagedAttachmentQuerySet(models.QuerySet["StagedAttachment"]):
    def staged(self) -> Self:
        return self.filter(status=StagingStatus.STAGED)

    def owned_by(self, actor_ref: str) -> Self:
        return self.filter(actor_ref=actor_ref)


class StagedAttachment(models.Model):
    """One uploaded file; its id is the media id that messages carry."""

    id = ExactCharField(max_length=ID, primary_key=True, default=new_id)
    actor_ref = ExactCharField(_("owner"), max_length=REF)
    tenant_ref = ExactCharField(_("tenant"), max_length=REF, null=True)
    name = CleanCharField(_("name"), max_length=255)
    content_type = CleanCharField(_("content type"), max_length=127)
    size = models.BigIntegerField(_("size"))
    file = CleanCharField(_("file"), max_length=512)
    status = ExactCharField(_("status"), max_length=WORD)
    declared_size = models.BigIntegerField(_("declared size"), null=True)
    created_at = models.DateTimeField(_("created at"))
    staged_at = models.DateTimeField(_("staged at"), null=True)

    objects = StagedAttachmentQuerySet.as_manager()

    class Meta:
        db_table = "agent_staged_attachment"
        verbose_name = _("staged attachment")
        verbose_name_plural = _("staged attachments")
        indexes = [
            models.Index(fields=["actor_ref", "staged_at"], name="agent_staged_actor_staged_ix"),
        ]

    def __str__(self) -> str:
        return self.id
