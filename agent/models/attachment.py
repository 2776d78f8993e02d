"""Files that were uploaded and not necessarily sent: the built-in staging store."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from agent.domain.actor import Actor
from agent.domain.ids import new_id
from agent.domain.states import StagingStatus
from agent.models.fields import ID, REF, WORD, CleanCharField, ExactCharField


class StagedAttachmentQuerySet(models.QuerySet["StagedAttachment"]):
    def staged(self) -> Self:
        return self.filter(status=StagingStatus.STAGED)

    def uploading(self) -> Self:
        return self.filter(status=StagingStatus.UPLOADING)

    def owned_by(self, actor_ref: str) -> Self:
        return self.filter(actor_ref=actor_ref)

    def of(self, actor: Actor) -> Self:
        return self.filter(actor_ref=actor.ref, tenant_ref=actor.tenant_ref)

    def older_than(self, instant: datetime) -> Self:
        """Files staged before, and uploads begun before that never ended."""
        return self.filter(
            Q(status=StagingStatus.STAGED, staged_at__lt=instant)
            | Q(status=StagingStatus.UPLOADING, created_at__lt=instant)
        )

    def grow(self, seen: StagedAttachment, *, file: str, size: int) -> bool:
        """Put a longer file in the place of the one we saw; False when somebody was quicker, or it is over."""
        same = self.uploading().filter(pk=seen.pk, size=seen.size, file=seen.file)
        return same.update(file=file, size=size) == 1

    def finish(self, seen: StagedAttachment, *, content_type: str, at: datetime) -> bool:
        """Turn the upload we saw into a file; False when it has changed or is over."""
        same = self.uploading().filter(pk=seen.pk, size=seen.size, file=seen.file)
        return same.update(status=StagingStatus.STAGED, content_type=content_type, staged_at=at) == 1


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
