"""The shapes of files on their way in, for the OpenAPI document."""

from __future__ import annotations

from rest_framework import serializers

from agent.api.shapes import Shape


class StagedShape(Shape):
    mediaId = serializers.CharField()
    contentType = serializers.CharField()
    name = serializers.CharField()
    size = serializers.IntegerField(allow_null=True)
    stagedAt = serializers.DateTimeField(allow_null=True)


class UploadFormShape(Shape):
    file = serializers.FileField()


class UploadShape(Shape):
    mediaId = serializers.CharField()
    uploadUrl = serializers.CharField()
    method = serializers.CharField()
