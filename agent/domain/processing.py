"""What processors are shown and answer (spec 11 §8): a derived prompt, or a verdict about a text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from agent.domain.actor import Actor
from agent.domain.model_calls import ShownCall, ShownMessage, ShownResult

Subject = Literal["prompt", "answer", "structured_output", "follow_up"]
LOOKBACK = 64  # characters that an incremental processor may still change


@dataclass(frozen=True, slots=True, kw_only=True)
class InputPrompt:
    """What a model is about to be shown: the system block and the conversation."""

    system: str
    messages: tuple[ShownMessage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorContext:
    """For whom a processor works, and on what."""

    actor: Actor
    agent_name: str | None
    thread_id: str
    run_id: str
    subject: Subject
    persona: str | None = None
    page_context: Mapping[str, Any] | None = None
    host: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What becomes of a text; made by `passed`, `replaced` and `rejected`."""

    verdict: Literal["pass", "replace", "reject"]
    text: str = ""
    reason: str = ""


def passed() -> Verdict:
    """The text may be shown as it is."""
    return Verdict(verdict="pass")


def replaced(text: str) -> Verdict:
    """This is shown instead."""
    return Verdict(verdict="replace", text=text)


def rejected(reason: str) -> Verdict:
    """Nothing is shown; the reason is kept with the run."""
    return Verdict(verdict="reject", reason=reason)


class BrokenPromise(ValueError):
    """A processor did what it may not; the text says what."""


def changes_of(before: InputPrompt, after: InputPrompt) -> dict[str, Any]:
    """What a derived prompt differs in, as a journal keeps it. Only texts, arguments and outputs may differ."""
    if len(after.messages) != len(before.messages):
        raise BrokenPromise("an input processor may not add or leave out messages")
    changed: dict[str, Any] = {}
    for number, (old, new) in enumerate(zip(before.messages, after.messages, strict=True)):
        if _frame_of(old) != _frame_of(new):
            raise BrokenPromise("an input processor changes texts, arguments and outputs, nothing else of a message")
        if new != old:
            changed[str(number)] = {
                "content": new.content,
                "inputs": [call.input for call in new.tool_calls],
                "outputs": [result.output for result in new.tool_results],
            }
    told = {"system": after.system} if after.system != before.system else {}
    return told | ({"messages": changed} if changed else {})


def with_changes(prompt: InputPrompt, changes: Mapping[str, Any]) -> InputPrompt:
    """The derived prompt. A message that differs is not given back to its provider in opaque form."""
    changed = changes.get("messages") or {}
    messages = tuple(
        _changed(message, changed[str(number)]) if str(number) in changed else message
        for number, message in enumerate(prompt.messages)
    )
    return InputPrompt(system=changes.get("system", prompt.system), messages=messages)


def _frame_of(message: ShownMessage) -> tuple[object, ...]:
    calls = [(call.id, call.name) for call in message.tool_calls]
    results = [(result.id, result.name, result.failed) for result in message.tool_results]
    return message.role, calls, results, message.attachments


def _changed(message: ShownMessage, texts: Mapping[str, Any]) -> ShownMessage:
    calls = zip(message.tool_calls, texts["inputs"], strict=True)
    results = zip(message.tool_results, texts["outputs"], strict=True)
    return replace(
        message,
        content=texts["content"],
        tool_calls=tuple(ShownCall(id=call.id, name=call.name, input=given) for call, given in calls),
        tool_results=tuple(
            ShownResult(id=result.id, name=result.name, output=output, failed=result.failed)
            for result, output in results
        ),
        provider_state=None,
    )
