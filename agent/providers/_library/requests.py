"""Our request in the library's words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    DocumentUrl,
    FileUrl,
    ImageUrl,
    InstructionPart,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
    VideoUrl,
)
from pydantic_ai.messages import (
    ModelRequest as LibraryRequest,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from agent.domain.model_calls import Json, ModelRequest, ShownAttachment, ShownMessage, ShownResult
from agent.providers._library.clients import LibraryModel
from agent.providers._library.state import call_part, restore

MEDIA: dict[str, type[FileUrl]] = {"image": ImageUrl, "audio": AudioUrl, "video": VideoUrl}
ANSWER = "answer"  # the name of a structured answer's schema where a vendor wants one


def parameters(request: ModelRequest, model: LibraryModel) -> ModelRequestParameters:
    """Tools, system block and the schema of a structured answer."""
    leading, _ = _split(request.messages)
    instructions = [InstructionPart(content=request.system)] if request.system else []
    instructions += [InstructionPart(content=message.content, dynamic=True) for message in leading]
    wanted = ModelRequestParameters(
        function_tools=[
            ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=dict(tool.schema))
            for tool in request.tools
        ],
        instruction_parts=instructions,
    )
    if request.response_schema is not None:
        native = model.profile.get("supports_json_schema_output", False)
        wanted.output_mode = "native" if native else "prompted"
        wanted.output_object = OutputObjectDefinition(json_schema=dict(request.response_schema), name=ANSWER)
    return wanted


def settings(own: Mapping[str, Json], timeout: float | None, model: LibraryModel) -> ModelSettings:
    """The settings of a call; the library knows most of ours by the same names."""
    wanted = dict(own)
    if timeout is not None and "timeout" not in model.unsupported_settings:
        wanted.setdefault("timeout", timeout)
    return cast(ModelSettings, wanted)


def messages(request: ModelRequest, model: LibraryModel, wanted: ModelRequestParameters) -> list[ModelMessage]:
    """The transcript: one request part a message, all results of a step in one request after it."""
    _, rest = _split(request.messages)
    turns: list[ModelMessage] = []
    asked: list[ModelRequestPart] = []
    for message in rest:
        if message.role != "assistant":
            asked.append(_spoken(message))
            continue
        if asked:
            turns.append(LibraryRequest(parts=asked))
        turns.append(_answered(message, model))
        asked = [_result(result) for result in message.tool_results]
    if asked:
        turns.append(LibraryRequest(parts=asked))
    return model.prepare_messages(turns, wanted)


def _split(shown: Sequence[ShownMessage]) -> tuple[Sequence[ShownMessage], Sequence[ShownMessage]]:
    """The system messages that lead, a summary for one, belong to the system block; the rest is the transcript."""
    first = next((place for place, message in enumerate(shown) if message.role != "system"), len(shown))
    return shown[:first], shown[first:]


def _spoken(message: ShownMessage) -> ModelRequestPart:
    if message.role == "system":
        return SystemPromptPart(content=message.content)
    if not message.attachments:
        return UserPromptPart(content=message.content)
    return UserPromptPart(content=list(_contents(message)))


def _contents(message: ShownMessage) -> Iterator[UserContent]:
    if message.content:
        yield message.content
    yield from _files(message.attachments)


def _files(attachments: Iterable[ShownAttachment]) -> Iterator[UserContent]:
    for attachment in attachments:
        media = attachment.content_type.partition(";")[0].strip().lower()
        if attachment.data is not None:
            yield _inline(attachment.name, media, attachment.data)
            continue
        build: Any = MEDIA.get(media.partition("/")[0], DocumentUrl)
        file: UserContent = build(url=attachment.url, media_type=media)
        yield file


def _inline(name: str, media: str, data: bytes) -> UserContent:
    """Bytes as they are; a text in words, which every model takes."""
    if media.startswith("text/"):
        return f"The file {json.dumps(name, ensure_ascii=False)} ({media}):\n{data.decode(errors='replace')}"
    return BinaryContent(data=data, media_type=media)


def _answered(message: ShownMessage, model: LibraryModel) -> ModelResponse:
    earlier = restore(message, model)
    if earlier is not None:
        return earlier
    text = [{"part_kind": "text", "content": message.content}] if message.content else []
    stored = {"kind": "response", "parts": [*text, *map(call_part, message.tool_calls)]}
    (response,) = ModelMessagesTypeAdapter.validate_python([stored])
    return cast(ModelResponse, response)


def _result(result: ShownResult) -> ToolReturnPart:
    """A result as text: the same bytes every time, for vendors' caches, and never empty, which some refuse."""
    text = result.output if isinstance(result.output, str) else None
    if text is None or not text.strip():
        text = json.dumps(result.output, ensure_ascii=False, separators=(",", ":"))
    outcome: Any = "failed" if result.failed else "success"
    return ToolReturnPart(tool_name=result.name, content=text, tool_call_id=result.id, outcome=outcome)
