"""What a client shows after it has read the frames of a run, as the chat page does. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Shown = dict[str, Any]


def fold(frames: Iterable[Mapping[str, Any]]) -> Shown:
    """The steps of a turn, and how it ended. A `step-restart` drops what the unfinished step had shown."""
    shown: Shown = {"steps": [], "title": None, "cancelled": False}
    for frame in frames:
        _take(shown, frame)
    return shown


def _take(shown: Shown, frame: Mapping[str, Any]) -> None:
    kind = frame["kind"]
    if kind == "step-start":
        shown["steps"].append(_empty())
    elif kind == "step-restart":
        _restart(shown["steps"], frame["step"])
    elif kind == "title":
        shown["title"] = frame["title"]
    elif kind == "cancelled":
        shown["cancelled"] = True
    elif kind in ("text", "reasoning"):
        shown["steps"][-1][kind] += frame["text"]
    elif kind == "step-finish":
        _finish(shown["steps"], frame)
    elif kind.startswith("tool-"):
        _call(shown["steps"], frame)


def _empty(*, first: bool = False) -> Shown:
    """A step; `first` is that of what the agent asked before any model call, which no frame opens."""
    return {"text": "", "reasoning": "", "calls": {}, "usage": None, "first": first}


def _restart(steps: list[Shown], step: int) -> None:
    """The step of that number begins anew; its predecessors stay, whether or not it had been opened."""
    place = step + sum(each["first"] for each in steps)
    assert place <= len(steps), "a step was left out"
    steps[place:] = [_empty()]


def _finish(steps: list[Shown], frame: Mapping[str, Any]) -> None:
    """What a step cost; a second copy, written by a recovery, says its number and changes nothing."""
    step = steps[frame.get("step", -1)]
    step["usage"] = {**frame["usage"], "costUsd": frame["costUsd"], "model": frame["model"]}


def _call(steps: list[Shown], frame: Mapping[str, Any]) -> None:
    call_id = frame["id"]
    if frame.get("name") == "ask" and not steps:
        steps.append(_empty(first=True))
        steps[-1]["calls"][call_id] = {"name": frame["name"]}
    if frame["kind"] == "tool-input-start":
        steps[-1]["calls"][call_id] = {"name": frame["name"]}
        return
    calls = next(step["calls"] for step in reversed(steps) if call_id in step["calls"])
    if frame["kind"] == "tool-input-available":
        calls[call_id]["input"] = frame["input"]
    elif frame["kind"] == "tool-output":
        calls[call_id]["output"] = frame["output"]
    elif frame["kind"] in ("tool-output-error", "tool-output-denied"):
        calls[call_id]["error"] = frame.get("error") or frame.get("reason")


def fold_messages(messages: Iterable[Mapping[str, Any]]) -> list[Shown]:
    """What the same client shows of stored assistant messages."""
    return [_stored(message) for message in messages]


def _stored(message: Mapping[str, Any]) -> Shown:
    calls = {call["id"]: {"name": call["name"], "input": call["input"]} for call in message["tool_calls"] or ()}
    for result in message["tool_results"] or ():
        settled = {"error": result["error"]} if result.get("error") else {"output": result["output"]}
        calls[result["id"]] |= settled
    return {"text": message["content"], "reasoning": message["reasoning"] or "", "calls": calls}
