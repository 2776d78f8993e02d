"""Everything the agent raises: one class a situation, each with a stable code and a sentence safe to show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

ANEW: Final = "Call without it for a new preview."


class AgentError(Exception):
    """Root of the errors of this package; `code` is part of the contract, the message is safe to show."""

    code = "run_failed"
    message = "The request could not be carried out."

    def __init__(self, message: str | None = None, *, code: str | None = None) -> None:
        self.message = message or self.message
        self.code = code or self.code
        super().__init__(self.message)


class Invalid(AgentError):
    """A value that is not allowed; `fields` names each field with what is allowed."""

    code = "invalid_body"
    message = "The request is not valid."

    def __init__(
        self,
        message: str | None = None,
        *,
        code: str | None = None,
        fields: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        super().__init__(message, code=code)
        self.fields = {name: list(texts) for name, texts in (fields or {}).items()}

    @classmethod
    def field(cls, name: str, text: str) -> Invalid:
        """The error of one field."""
        return cls(f"{name}: {text}", fields={name: [text]})


class NotFound(AgentError):
    """Nothing of that name is there, or it is deleted."""

    code = "not_found"
    message = "Not found."


class NotAllowed(AgentError):
    """It is there, and it is not this actor's."""

    code = "forbidden"
    message = "You may not do this."


class NotAuthenticated(AgentError):
    """Nobody is signed in."""

    code = "not_authenticated"
    message = "Sign in first."


class NotSupported(AgentError):
    """The store or the installation does not have this capability."""

    code = "not_supported"
    message = "This installation does not support that."


class Conflict(AgentError):
    """The state does not allow it now."""

    code = "conflict"
    message = "The state has changed meanwhile."


class IllegalMove(Conflict):
    """A state table has no such move."""


class AlreadyDecided(Conflict):
    """Another decision stands."""

    code = "already_decided"
    message = "This was decided already."


class RunNotActive(Conflict):
    """The run that asked is over."""

    code = "run_not_active"
    message = "The answer that asked for this is over."


class IsProposal(Conflict):
    """The call became a proposal, which is decided in its stead."""

    code = "is_proposal"
    message = "This call became a proposal: decide that."


class NotQuestion(Conflict):
    """Only a question is answered or skipped; its name on the wire is that of the other way round."""

    code = "is_question"
    message = "This call is no question: approve or reject it."


class CardChanged(Conflict):
    """What was shown is not what would be decided."""

    code = "card_changed"
    message = "This is not what you were shown. Look at it again."


class ApprovalExpired(Conflict):
    """Nobody decided in time."""

    code = "approval_expired"
    message = "The time to decide this is over."


class RunActive(Conflict):
    """The thread is being answered by a run."""

    code = "run_active"
    message = "An answer is still being written in this conversation."


class MessageGone(Conflict):
    """The message waited, and its run has started."""

    code = "message_gone"
    message = "This message is being answered already."


class CursorExpired(Conflict):
    """What stood behind the cursor is pruned: begin anew with what is kept."""

    code = "cursor_expired"
    message = "What you have read last is gone. Begin anew."


class IdempotencyKeyReused(AgentError):
    """The key was used before with another body."""

    code = "idempotency_key_reused"
    message = "This Idempotency-Key was used for another request."


class OverQuota(AgentError):
    """The actor's quota of `period` (day or month) is used up."""

    code = "quota_exceeded"
    message = "The usage limit is reached."

    def __init__(self, message: str | None = None, *, period: str) -> None:
        super().__init__(message or f"The usage limit of this {period} is reached.")
        self.period = period


class RunFailed(AgentError):
    """A run that must end as failed with this code (spec 03 §7)."""


class ReplayDiverged(RunFailed):
    """The journal holds another step at this position than the code asks for."""

    code = "replay_diverged"
    message = "This answer could not be continued after an update of the software."


class GivenUp(RunFailed):
    """The run was taken up again and again and got no further."""

    message = "The answer was begun several times and got no further."


class ModelNoOutput(RunFailed):
    """The model call ended without anything to show."""

    code = "model_no_output"
    message = "The model gave no answer."


class OutputRejected(RunFailed):
    """An output processor refused what the model said."""

    code = "output_rejected"
    message = "The answer was held back."


class StructuredOutputInvalid(RunFailed):
    """The answer could not be brought into its form, also not after the repairs."""

    code = "structured_output_invalid"
    message = "The answer could not be brought into the form that is asked for."


class StreamFailed(AgentError):
    """A followed run ended as failed; raised after the replay of its frames."""


class ToolError(AgentError):
    """Raised by a tool: the message is told to the model."""

    code = "tool_failed"


class ConfirmTokenError(ToolError):
    """A confirm token that is no proof of this call (`invalid`), or was spent on it before (`used`)."""

    def __init__(self, reason: Literal["invalid", "used"]) -> None:
        if reason == "used":
            super().__init__(f"The confirmToken was used. {ANEW}", code="confirm_token_used")
        else:
            text = "The confirmToken is not valid for this call, or has expired."
            super().__init__(f"{text} {ANEW}", code="confirm_token_invalid")
        self.reason = reason


class ModelError(AgentError):
    """A provider's failure: `transient` ones are tried again; `status` is the vendor's HTTP status if any.

    `too_long`: the model cannot take so much; less of the conversation may be tried.
    """

    code = "model_error"
    message = "The model could not be reached."

    def __init__(
        self,
        message: str | None = None,
        *,
        transient: bool = False,
        status: int | None = None,
        usage: object | None = None,
        too_long: bool = False,
    ) -> None:
        super().__init__(message)
        self.too_long = too_long
        self.transient = transient
        self.status = status
        self.usage = usage


class Signal(BaseException):
    """Control flow of a run. No `except Exception` of a tool or a processor may swallow it."""

    agent_signal = True


class Parked(Signal):
    """The run waits for a person and its worker is free."""


class Cancelled(Signal):
    """The run was asked to stop, and has reached a border; `usage` is what a broken-off model call had reported."""

    def __init__(self, *, usage: object | None = None) -> None:
        super().__init__("cancelled")
        self.usage = usage


class LeaseLost(Signal):
    """Another worker owns the run: stop at once and write nothing."""
