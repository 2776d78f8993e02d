"""What a tool, a gate and a prompt are told of the run they work for; and what a tool may answer beside its output."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from string import Formatter
from typing import Literal, Protocol

from agent.domain.actor import Actor, Owner
from agent.domain.canonical import compact_json
from agent.domain.ledger import UsageTotals
from agent.domain.model_calls import CancelFlag, Frame, Json, NeverCancelled
from agent.domain.snapshots import Message, ThreadDetail, ThreadScope, ThreadSummary, ToolCall
from agent.domain.text import clean_text


class StoreReads(Protocol):
    """The store as a tool sees it: reads only, synchronous (an async tool goes through `agent.db.in_db`)."""

    def get_thread(self, thread_id: str) -> ThreadDetail | None: ...
    def list_threads(self, actor: Actor, limit: int = 50) -> list[ThreadSummary]: ...
    def thread_scope(self, thread_id: str) -> ThreadScope | None: ...
    def owner_of_thread(self, thread_id: str) -> Owner | None: ...
    def messages_of_run(self, thread_id: str, run_id: str) -> list[Message] | None: ...
    def get_tool_call(self, call_id: str) -> ToolCall | None: ...
    def usage_between(self, actor_ref: str, start: datetime, end: datetime) -> UsageTotals: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferContext:
    """Whom tools are offered to; `allowed_tools` is the persona's list, None = no persona or one that allows all."""

    actor: Actor
    agent_name: str | None = None
    thread_id: str | None = None
    run_id: str | None = None
    persona: str | None = None
    allowed_tools: frozenset[str] | None = None
    page_context: Mapping[str, Json] | None = None
    ui_capabilities: Mapping[str, Json] | None = None
    host: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptContext:
    """What a prompt or a contributor may be made of; asked once a run, and the text is journaled."""

    actor: Actor
    agent_name: str | None
    thread_id: str
    run_id: str
    persona: str | None = None
    page_context: Mapping[str, Json] | None = None
    host: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """One execution of one call. A repeat carries the same `idempotency_key`: pass it on to whatever you change."""

    actor: Actor
    thread_id: str
    run_id: str
    tool_call_id: str
    store: StoreReads
    request_id: str | None = None
    agent_name: str | None = None
    persona: str | None = None
    page_context: Mapping[str, Json] | None = None
    ui_capabilities: Mapping[str, Json] | None = None
    host: Mapping[str, Json] | None = None
    cancelled: CancelFlag = field(default_factory=NeverCancelled)
    emit: Callable[[Frame], None] = field(default=lambda _: None, repr=False)

    @property
    def idempotency_key(self) -> str:
        return f"{self.run_id}:{self.tool_call_id}"

    def emit_ui(
        self,
        component: str,
        props: Mapping[str, Json],
        *,
        id: str | None = None,  # noqa: A002 - the frame's own word
        partial: bool = False,
        version: str | None = None,
        fallback_text: str | None = None,
    ) -> None:
        """Show a component now; the last props of each id stay on the message, and empty props withdraw it.

        `fallback_text` stands for it where the client does not render this `version` of it.
        """
        frame: Frame = {
            "kind": "ui",
            "id": id or f"{self.tool_call_id}:{component}",
            "component": component,
            "props": json.loads(compact_json(dict(props))),
            "toolCallId": self.tool_call_id,
        }
        frame |= {} if version is None else {"version": version}
        frame |= {} if fallback_text is None else {"fallbackText": clean_text(fallback_text)}
        self.emit({**frame, "partial": True} if partial else frame)


@dataclass(frozen=True, slots=True)
class Presentation:
    """How a result is shown to people, beside the output that the model is given."""

    text: str | None = None
    ui: Sequence[Mapping[str, Json]] = ()


@dataclass(frozen=True, slots=True)
class Confirm:
    """What the card of an action says: on a tool, templates over the input's fields, as in `Refund {invoice}`."""

    title: str
    verb: str
    detail: str | None = None

    def texts(self) -> dict[str, str]:
        """As a card keeps it; what is absent is left out."""
        detail = {} if self.detail is None else {"detail": self.detail}
        return {"title": self.title, "verb": self.verb, **detail}

    def filled(self, fields: Mapping[str, Json]) -> dict[str, str]:
        """The texts with the input's values in their places. What a value says is never read as a template."""
        shown = {name: _in_words(value) for name, value in fields.items()}
        return {name: text.format_map(shown) for name, text in self.texts().items()}

    def places(self) -> set[str]:
        """The names of the input's fields that the templates ask for; `ValueError` for what is no template."""
        parsed = (piece for text in self.texts().values() for piece in Formatter().parse(text))
        return {re.split(r"[.\[]", name)[0] for _, name, _, _ in parsed if name is not None}


def _in_words(value: Json) -> Json:
    """A value as a sentence has it; numbers stay, so that a template may format them."""
    if value is None or isinstance(value, bool):
        return {None: "", True: "yes", False: "no"}[value]
    return compact_json(value) if isinstance(value, list) else value


Answer = Literal["ready", "denied", "completed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """What a preflight found: made by `ready`, `denied` and `completed`."""

    answer: Answer
    confirmation: Confirm | None = None
    reason: str = ""
    output: object = None


def ready(confirmation: Confirm | Mapping[str, str] | None = None) -> Preflight:
    """Nothing is in the way. A confirmation of title, verb, detail? is shown as it stands, not the tool's own."""
    if isinstance(confirmation, Mapping):
        confirmation = Confirm(**confirmation)
    if confirmation is not None and not all(isinstance(text, str) for text in confirmation.texts().values()):
        raise TypeError("a confirmation is made of texts")
    return Preflight(answer="ready", confirmation=confirmation)


def denied(reason: str) -> Preflight:
    """It must not be done; the reason is told to the model."""
    if not str(reason).strip():
        raise ValueError("a denial has a reason")
    return Preflight(answer="denied", reason=str(reason))


def completed(output: object) -> Preflight:
    """There is nothing left to do, and this is what came of it."""
    return Preflight(answer="completed", output=output)


@dataclass(frozen=True, slots=True)
class Described:
    """A tool's answer to `describe(ctx)`: hidden for this actor now, or with another description."""

    available: bool = True
    description: str | None = None
