"""What crosses the model port: a request, the frames of a stream, a reply. Vendor-neutral values.

Token convention (spec 11 §4): `input_tokens` is the whole input, cached parts included; the cache counts are subsets
of it; `output_tokens` includes reasoning. None means that the vendor did not say, which is never the same as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, Protocol

Json = Any  # what json.loads gives: the one place where a value has no narrower type
Frame = dict[str, Json]
FrameEmitter = Callable[[Frame], None]

Stop = Literal["end", "tool_calls", "length", "filtered"]
Role = Literal["user", "assistant", "system"]


class CancelFlag(Protocol):
    """Set when the run was asked to stop (an `asyncio.Event` keeps this promise)."""

    def is_set(self) -> bool: ...


class NeverCancelled:
    """The flag of a call that nobody can cancel."""

    def is_set(self) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as a model is offered it; `schema` is the JSON Schema of its input."""

    name: str
    description: str
    schema: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCall:
    """A call in the transcript; `id` is the provider's own id."""

    id: str
    name: str
    input: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownResult:
    """The result of the call with the same `id`; `failed` results are errors, refusals and expiries."""

    id: str
    name: str
    output: Json
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAttachment:
    """A file that a person sent; `data` are its bytes where the site has them, else the url is to be read."""

    url: str
    content_type: str
    name: str
    media_id: str | None = None
    data: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMessage:
    """One entry of the transcript. An assistant message carries its calls and all their results."""

    role: Role
    content: str = ""
    tool_calls: tuple[ShownCall, ...] = ()
    tool_results: tuple[ShownResult, ...] = ()
    attachments: tuple[ShownAttachment, ...] = ()
    provider_state: str | None = None  # the opaque text of the same provider's earlier reply


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One model call. `messages` obey spec 03 §5: they end with a user message or with tool results."""

    system: str
    messages: tuple[ShownMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    model: str | None = None  # the provider's own name of it; None = the provider's default
    settings: Mapping[str, Json] = field(default_factory=dict)  # temperature, max_tokens, ...
    response_schema: Mapping[str, Json] | None = None
    purpose: str = "chat"
    cancelled: CancelFlag = field(default_factory=NeverCancelled)
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts of one call, in the convention of this module; `reported_cost_usd` only as the vendor says it.

    No tokens and a reported cost of 0 are an answer that was kept, and asked of nobody.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_write_tokens: int | None = None
    cache_write_1h_tokens: int | None = None  # the part of the cache writes that is kept for an hour
    cache_read_tokens: int | None = None
    reported_cost_usd: Decimal | None = None

    @property
    def is_nothing(self) -> bool:
        """Whether it says that nothing was used, and not merely nothing."""
        return self.reported_cost_usd == 0 and not (self.input_tokens or self.output_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyCall:
    """A tool call of a reply. Arguments that are not JSON arrive as `{"__raw": "<text>"}`."""

    id: str
    name: str
    input: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The end of a model call. `usage` None means that the vendor reported nothing."""

    text: str = ""
    tool_calls: Sequence[ReplyCall] = ()
    usage: Usage | None = None
    stop: Stop = "end"
    model_id: str | None = None
    reasoning: str | None = None
    reasoning_ms: int | None = None
    ui: Sequence[Mapping[str, Json]] = ()
    provider_state: str | None = None
