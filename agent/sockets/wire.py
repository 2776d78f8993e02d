"""What a server says on a socket: JSON of the tables of spec 09 §6."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agent.api.errors import ErrorAnswer, answer_to
from agent.api.rendering import to_json
from agent.domain.snapshots import NumberedFrame
from agent.errors import AgentError

STATUS_OF_FAILED_RUN: Final = 500  # its followers were served well; 429 where a limit ended it
COME_BACK: Final = ErrorAnswer(
    status=503, code="use_cursor", message="Attach again after the last frame that you have."
)
FRAME_MAX: Final = 1024 * 1024  # what daphne sends in one message, unless it is told otherwise
OVERSIZED: Final = ErrorAnswer(status=413, code="too_large", message="A frame is too large here; follow it over HTTP.")


def frame(run_id: str, numbered: NumberedFrame) -> str:
    """A frame as it was stored, under its number."""
    text = (numbered.frame or "").rstrip("\n")
    return f'{{"type":"frame","runId":{to_json(run_id)},"id":{numbered.seq},"frame":{text}}}'


def say(kind: str, **fields: object) -> str:
    """A message; what is None is left out."""
    return to_json({"type": kind, **{name: value for name, value in fields.items() if value is not None}})


def told(kind: str, ref: str, body: Mapping[str, Any]) -> str:
    """A message that has the fields of an answer over HTTP."""
    return to_json({**body, "type": kind, "ref": ref})


def error(answer: ErrorAnswer, *, ref: str | None = None, run_id: str | None = None) -> str:
    """An error with the body that HTTP gives it, and the status as a field."""
    names: Mapping[str, Any] = {"ref": ref, "runId": run_id, "status": answer.status}
    return say("error", **{**answer.body, **names})


def failed_run(failure: AgentError) -> ErrorAnswer:
    """How the end of a failed run is told."""
    known = answer_to(failure)
    status = 429 if failure.code == "quota_exceeded" else known.status if known else STATUS_OF_FAILED_RUN
    return ErrorAnswer(status=status, code=failure.code, message=failure.message)
