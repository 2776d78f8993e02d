"""How a failure is told: the code it has, the raw text for the operator, the sentence for people."""

from __future__ import annotations

from typing import Any

from agent.conf import agent_settings
from agent.domain.redaction import redact
from agent.domain.runs import Run
from agent.errors import (
    AgentError,
    ModelError,
    ModelNoOutput,
    OutputRejected,
    OverQuota,
    ReplayDiverged,
    StructuredOutputInvalid,
)
from agent.flows.stream import GENERIC

WITH_CODES = (ModelNoOutput, OutputRejected, OverQuota, ReplayDiverged, StructuredOutputInvalid)


def code_of(error: BaseException) -> str:
    """The code a run fails with; whatever has none of its own is `run_failed`."""
    return error.code if isinstance(error, WITH_CODES) else "run_failed"


def raw_text(error: BaseException) -> str:
    """What an error says, without the secrets that it may repeat."""
    return redact(f"{type(error).__name__}: {error}") if str(error) else type(error).__name__


def shown_error(error: BaseException) -> dict[str, Any]:
    """`{code, message}` for followers: our own sentence where the code has one, else generic unless exposed."""
    code = code_of(error)
    if isinstance(error, AgentError) and (code != "run_failed" or isinstance(error, ModelError)):
        return {"code": code, "message": redact(error.message)}
    return {"code": code, "message": raw_text(error) if agent_settings().expose_errors else GENERIC}


def told_error(run: Run) -> dict[str, Any]:
    """What followers of a failed run are told, from its row."""
    code, raw = run.error_code or "run_failed", run.error_message or ""
    message = raw if agent_settings().expose_errors else GENERIC
    return {"code": code, "message": message if code == "run_failed" else raw.partition(": ")[2] or GENERIC}


def refusal(error: Exception) -> str:
    """The sentence for a message that could not start: one of ours is safe to show, as it is when a send is refused."""
    return redact(error.message) if isinstance(error, AgentError) else str(shown_error(error)["message"])
