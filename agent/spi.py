"""What a host or a vendor implements. Everything here is a Protocol; the values that cross are in `agent.domain`."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Protocol

from pydantic import BaseModel

from agent.domain.actor import Actor, Owner
from agent.domain.approvals import ApprovalThread, Requirement
from agent.domain.history import HistoryPolicy
from agent.domain.model_calls import FrameEmitter, Json, ModelRequest, Reply
from agent.domain.processing import InputPrompt, ProcessorContext, Verdict

__all__ = [
    "ActionTool",
    "ActorResolver",
    "ApprovalPolicy",
    "BackgroundActorResolver",
    "HistoryPolicy",
    "InputProcessor",
    "ModelProvider",
    "OutputProcessor",
    "QuotaPolicy",
]


class ModelProvider(Protocol):
    """A model vendor, in one call.

    `stream` emits `text`, `reasoning`, `tool-input-start`, `tool-input-delta` and `tool-input-available` frames with
    the vendor's call ids, and answers the whole reply. It raises `ModelError`; any other exception is permanent. It
    raises `Cancelled` within a second of `request.cancelled` being set; both carry the usage reported until then.
    Optional attributes: `alternating_roles` and `leading_system_only` (bool), `supports_tools` (False keeps agents with
    tools away, `agent.E033`), `default_model` (str) and `models()` (a list of names).
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
