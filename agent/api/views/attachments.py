"""Files: upload at once or in parts, list, read, remove. Another's file is as unknown as none."""

from __future__ import annotations

import os
from typing import Any, Final

from django.http import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.request import Request
from rest_framework.response import Response

from agent.api import docs
from agent.api.base import ActorAPIView
from agent.api.bodies import UploadBody
from agent.api.downloads import download
from agent.api.parsing import parse, path_id, read_body
from agent.api.shapes import AttachmentShape
from agent.api.upload_shapes import StagedShape, UploadFormShape, UploadShape
from agent.api.uploads import MULTIPART, body_of, part_of, uploaded
from agent.domain.clock import wire_time
from agent.domain.media import Attachment
from agent.flows import attachments

NEWEST: Final = 50
OCTETS: Final = "application/octet-stream"
NOTHING: Final = OpenApiResponse(description="Done.")
UPLOAD: Final = {404: ("not_found",), 501: ("not_supported",)}
TAKEN: Final = {
    400: docs.BODY_CODES,
    413: ("too_large",),
    415: ("unsupported_type",),
    501: ("not_supported",),
}
OFFSET: Final = OpenApiParameter(
    "Upload-Offset", OpenApiTypes.INT, OpenApiParameter.HEADER, description="Bytes so far.", response=[204]
)
CONTENT_RANGE: Final = OpenApiParameter(
    "Content-Range",
    {"type": "string", "pattern": r"^bytes (\*|[0-9]{1,18}-[0-9]{1,18})/([0-9]{1,18}|\*)$"},
    OpenApiParameter.HEADER,
    description="`bytes first-last/total`; `bytes */total` with no bytes asks how far it is. Absent: these are all.",
)
TOKEN: Final = OpenApiParameter(
    "token", OpenApiTypes.STR, OpenApiParameter.QUERY, required=True, description="As the url of the file has it."
)
RANGE: Final = OpenApiParameter(
    "Range", OpenApiTypes.STR, OpenApiParameter.HEADER, description="One range of bytes; several are answered whole."
)


class AttachmentsView(ActorAPIView):
    @docs.operation(
        "attachments_upload",
        "Upload a file",
        request={MULTIPART: UploadFormShape},
        answers={201: docs.answer(AttachmentShape)},
        errors=TAKEN,
    )
    def post(self, request: Request) -> Response:
        """Stages one file, to be sent by its id. Its type is what its bytes are, whatever it is called."""
        with uploaded(request, most=attachments.settings().max_bytes) as file:
            content: Any = file.file
            staged = attachments.stage(self.actor, content, name=file.name or "", size=file.size or 0)
        return Response(staged.to_json(), status=201)

    @docs.operation(
        "attachments_list",
        "List files",
        answers={200: docs.answer(StagedShape(many=True))},
        errors={501: ("not_supported",)},
    )
    def get(self, request: Request) -> Response:
        """The caller's newest 50, without urls."""
        return Response([_listed(one) for one in attachments.newest(self.actor, NEWEST)])


class UploadsView(ActorAPIView):
    @docs.operation(
        "uploads_begin",
        "Begin an upload in parts",
        request=UploadBody,
        example={"name": "lamp.png", "contentType": "image/png", "size": 48213},
        answers={201: docs.answer(UploadShape)},
        errors=TAKEN,
    )
    def post(self, request: Request) -> Response:
        """Says where the bytes go; they may come in parts, and go on after a broken line."""
        values = parse(UploadBody, read_body(request))
        begun = attachments.begin(
            self.actor, name=values["name"], content_type=values["contentType"], size=values["size"]
        )
        told = {"mediaId": begun.media_id, "uploadUrl": begun.upload_url, "method": begun.method}
        return Response(told, status=201)


class UploadView(ActorAPIView):
    http_method_names = ["put", "delete"]

    @docs.operation(
        "uploads_put",
        "Add bytes to an upload",
        request={OCTETS: OpenApiTypes.BINARY},
        answers={204: NOTHING},
        errors={400: docs.BODY_CODES, **UPLOAD, 422: ("size_mismatch",)},
        parameters=[CONTENT_RANGE, OFFSET],
    )
    def put(self, request: Request, media_id: str) -> Response:
        """Adds the bytes behind those that have come."""
        part, known = part_of(request), path_id(media_id)
        if part.offset is None:
            come = attachments.received(self.actor, known, total=part.total)
        else:
            come = attachments.receive(self.actor, known, body_of(request, part), offset=part.offset, total=part.total)
        return Response(status=204, headers={"Upload-Offset": str(come)})

    @docs.operation(
        "uploads_discard",
        "Remove a file",
        answers={204: NOTHING},
        errors={**UPLOAD, 409: ("conflict",)},
    )
    def delete(self, request: Request, media_id: str) -> Response:
        """Forgets an upload, or a file that no message carries."""
        attachments.discard(self.actor, path_id(media_id))
        return Response(status=204)


class UploadCompleteView(ActorAPIView):
    @docs.operation(
        "uploads_complete",
        "End an upload",
        answers={200: docs.answer(AttachmentShape)},
        errors={**UPLOAD, 409: ("bytes_missing",), 415: ("unsupported_type",)},
    )
    def post(self, request: Request, media_id: str) -> Response:
        """Makes it a file that can be sent, if its bytes are what they were said to be."""
        return Response(attachments.complete(self.actor, path_id(media_id)).to_json())


class ContentView(ActorAPIView):
    @docs.operation(
        "attachments_content",
        "Read a file",
        answers={
            (200, OCTETS): OpenApiResponse(response=OpenApiTypes.BINARY),
            (206, OCTETS): OpenApiResponse(response=OpenApiTypes.BINARY, description="The range that was asked for."),
        },
        errors=UPLOAD,
        parameters=[TOKEN, RANGE],
    )
    def get(self, request: Request, media_id: str) -> HttpResponseBase:
        """The bytes of an own file. Only plain images are shown; nothing else runs or opens on this site."""
        token = request.query_params.get("token", "")
        file, content = attachments.content(self.actor, path_id(media_id), token)
        size = content.seek(0, os.SEEK_END)
        return download(request._request, file, content, size=size)


def _listed(file: Attachment) -> dict[str, Any]:
    told = file.to_json()
    del told["url"]
    return {**told, "size": file.size, "stagedAt": None if file.staged_at is None else wire_time(file.staged_at)}
