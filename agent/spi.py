"""What a host or a vendor implements. Everything here is a Protocol; the values that cross are in `agent.domain`."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Protocol

from pydantic import BaseModel

from agent.domain.actor import Actor, Owner
from agent.domain.approvals import ApprovalThread, Requirement
from agent.domain.history import HistoryPolicy
from agent.domain.model_calls import FrameEmitter, Json, ModelRequest, Reply

__all__ = [
    "ActionTool",
    "ActorResolver",
    "ApprovalPolicy",
    "BackgroundActorResolver",
    "HistoryPolicy",
    "ModelProvider",
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
