"""The frames of runs, as they were shown to who followed."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from agent.models.fields import ID, CleanTextField, ExactCharField


class StreamFrameQuerySet(models.QuerySet["StreamFrame"]):
    def in_order(self) -> Self:
        return self.order_by("seq")

    def after(self, run_id: str, seq: int) -> Self:
        return self.filter(run_id=run_id, seq__gt=seq)

    def terminal(self) -> Self:
        return self.filter(frame=None)


class StreamFrame(models.Model):
    """One frame: a JSON object and a newline; a row without a frame is the end of its stream."""

    id = models.BigAutoField(primary_key=True)
    run_id = ExactCharField(_("run"), max_length=ID)
    seq = models.IntegerField(_("number"))
    frame = CleanTextField(_("frame"), null=True)
    error = CleanTextField(_("error"), null=True)
    created_at_ms = models.BigIntegerField(_("created at (ms)"))

    objects = StreamFrameQuerySet.as_manager()

    class Meta:
        db_table = "agent_stream_frame"
        verbose_name = _("stream frame")
        verbose_name_plural = _("stream frames")
        constraints = [
            models.UniqueConstraint(fields=["run_id", "seq"], name="agent_frame_run_seq_uq"),
        ]
        indexes = [
            models.Index(fields=["created_at_ms"], name="agent_frame_created_ix"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} #{self.seq}"
