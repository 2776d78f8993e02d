"""What a host or a vendor implements. Everything here is a Protocol; the values that cross are in `agent.domain`."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime
from typing import IO, Any, Protocol

from pydantic import BaseModel

from agent.domain.actor import Actor, Owner
from agent.domain.approvals import ApprovalThread, Requirement
from agent.domain.history import HistoryPolicy
from agent.domain.media import Attachment, NewFile, PendingUpload
from agent.domain.model_calls import FrameEmitter, Json, ModelRequest, Reply
from agent.domain.processing import InputPrompt, ProcessorContext, Verdict

__all__ = [
    "ActionTool",
    "ActorResolver",
    "ApprovalPolicy",
    "AttachmentStagingStore",
    "BackgroundActorResolver",
    "HistoryPolicy",
    "InputProcessor",
    "ListsAttachments",
    "ModelProvider",
    "OpensAttachments",
    "OutputProcessor",
    "QuotaPolicy",
    "TakesUploads",
]


class ModelProvider(Protocol):
    """A model vendor, in one call.

    `stream` emits `text`, `reasoning`, `tool-input-start`, `tool-input-delta` and `tool-input-available` frames with
    the vendor's call ids, and answers the whole reply. It raises `ModelError`; any other exception is permanent. It
    raises `Cancelled` within a second of `request.cancelled` being set; both carry the usage reported until then.
    Optional attributes: `alternating_roles` and `leading_system_only` (bool), `supports_tools` (False keeps agents with
    tools away, `agent.E033`), `supports_files` (False: files are told in words), `default_model` (str) and `models()`
    (a list of names).
    """

    def stream(self, request: ModelRequest, emit: FrameEmitter) -> Awaitable[Reply]: ...


class ActorResolver(Protocol):
    """Who acts: the actor of a request or of a socket's scope; None = nobody, which is a 401."""

    def resolve(self, request: Any) -> Actor | None | Awaitable[Actor | None]: ...  # noqa: ANN401 - or a socket's scope


class BackgroundActorResolver(Protocol):
    """Who that is now: for work that runs long after the request."""

    def resolve(self, ref: str, tenant_ref: str | None) -> Actor | None: ...


class ActionTool(Protocol):
    """What a tool declares about its approval."""

    @property
    def name(self) -> str: ...
    @property
    def requires_approval(self) -> bool: ...
    @property
    def approver(self) -> str: ...
    @property
    def four_eyes(self) -> bool: ...


class ApprovalPolicy(Protocol):
    """Which actions wait for a person, and who that is (spec 07 §1-2). Both may read the database.

    What it raises, and an answer of a wrong kind, fails the call: nothing runs that nobody was asked about.
    """

    def requirement_for(
        self,
        tool: ActionTool,
        input: BaseModel,  # noqa: A002 - the tool's own word
        actor: Actor,
        thread: ApprovalThread,
    ) -> Requirement: ...

    def can_decide(self, actor: Actor, approver: str, scope: Owner) -> bool: ...


class QuotaPolicy(Protocol):
    """How much of the actor's limits is used (spec 08 §4): the report in its wire form.

    Optional method: `report_within(actor, run_id)`, asked between the steps of that run, which is open itself.
    """

    def report(self, actor: Actor) -> Mapping[str, Json]: ...


class Contributor(Protocol):
    """A part of the system prompt; None leaves it out."""

    def __call__(self, context: Any) -> str | None | Awaitable[str | None]: ...  # noqa: ANN401 - a PromptContext


class InputProcessor(Protocol):
    """Derives what a model is shown from what it would be shown; None leaves it as it is. Nothing stored changes.

    Texts, arguments and outputs may differ. Messages may not come, go or change places.
    """

    def __call__(
        self, prompt: InputPrompt, context: ProcessorContext, /
    ) -> InputPrompt | None | Awaitable[InputPrompt | None]: ...


class OutputProcessor(Protocol):
    """Judges a text before anybody sees it.

    Optional attributes: `incremental` (True: it is a plain function, and of any beginning of a text it changes only
    the last `lookback` characters once more comes) and `lookback` (64). Where every processor of an agent is
    incremental, its text is streamed that many characters late; else it is held until it is whole.
    """

    def __call__(self, text: str, context: ProcessorContext, /) -> Verdict | Awaitable[Verdict]: ...


class AttachmentStagingStore(Protocol):
    """Where uploaded files wait to be sent, and stay (spec 11 §9). Another's file is as unknown as none.

    Optional are the three protocols below; what is missing is answered 501, never guessed.
    """

    def stage(self, actor: Actor, file: NewFile) -> Attachment: ...
    def resolve(self, actor: Actor, media_id: str) -> Attachment | None:
        """The file with a url for this actor, made now; None when it is not theirs or not whole."""

    def delete(self, actor: Actor, media_id: str) -> bool:
        """Forget a file or an unfinished upload; False when there is none of this actor."""


class OpensAttachments(Protocol):
    """The store gives bytes itself: to the content route, and to models, which then need not reach any url."""

    def open(self, actor: Actor, media_id: str) -> IO[bytes] | None: ...


class ListsAttachments(Protocol):
    """The store can say what it holds; without it nothing is ever swept."""

    def list(
        self, actor: Actor, *, staged_before: datetime | None = None, limit: int | None = None
    ) -> Sequence[Attachment]:
        """The newest first. With `staged_before` only older ones, and uploads begun before that never ended."""

    def owners(self, *, staged_before: datetime) -> Sequence[Owner]:
        """Whose files are older."""


class TakesUploads(Protocol):
    """Uploads in parts. `append` is of a store whose bytes come through this site; its url is the site's own."""

    def begin(self, actor: Actor, *, name: str, content_type: str, size: int) -> PendingUpload: ...
    def append(self, actor: Actor, media_id: str, part: IO[bytes], *, offset: int) -> int:
        """Add bytes behind the first `offset` ones; how many there are now.

        Raises `NotFound`, and `Invalid` (`size_mismatch`) when they do not follow or are more than was said.
        """

    def received(self, actor: Actor, media_id: str) -> tuple[int, int]:
        """How many bytes have come, and how many were said; raises `NotFound`."""

    def complete(self, actor: Actor, media_id: str) -> Attachment:
        """Make it a file; raises `NotFound`, `Conflict` (`bytes_missing`), `Invalid` (`unsupported_type`)."""
