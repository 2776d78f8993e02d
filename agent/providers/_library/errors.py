"""The library's errors as ours: what may be shown, what may be tried again, and what the log may say."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import httpx2
from pydantic_ai import exceptions as library

from agent.domain.model_calls import Usage
from agent.errors import ModelError
from agent.providers.redaction import redact

TRY_AGAIN = {408, 409, 425, 429}  # and every 5xx
NO_STATUS = (
    library.ModelAPIError,
    library.UnexpectedModelBehavior,
    httpx2.TransportError,
    httpx2.StreamError,
    OSError,
)
SHOWN = {
    400: "The model did not accept the request.",
    401: "The model refused this site's credentials.",
    402: "The model account of this site is used up.",
    403: "The model refused this site's credentials.",
    404: "The model is not available.",
    413: "The conversation is too long for the model.",
    429: "The model is busy. Please try again in a moment.",
}
ADVICE = {
    401: "check the API key of this provider",
    402: "the vendor's account has no credit",
    403: "check that the API key may use this model",
    404: "check the model's name and the base_url",
}
BROKEN = "The connection to the model broke off. Please try again."
MISCONFIGURED = "The model is not set up on this site."

logger = logging.getLogger(__name__)


class VendorError(Exception):
    """The cause of a `ModelError`: the vendor's own words, redacted."""


def translate(error: Exception, model: str, secrets: Iterable[str], usage: Usage | None) -> ModelError:
    """The error for the loop; the redacted words go into the log and are its cause."""
    status = error.status_code if isinstance(error, library.ModelHTTPError) else None
    transient = _transient(error, status)
    words = redact(f"{type(error).__name__}: {error}", secrets)
    if not transient:
        logger.error("Model %s: %s%s", model, _advice(error, status), words)
    else:
        logger.warning("Model %s, may be tried again: %s", model, words)
    ours = ModelError(
        _sentence(error, status), transient=transient, status=status, usage=usage, too_long=_is_too_long(error, status)
    )
    ours.__cause__ = VendorError(words)
    return ours


def cut(model: str, usage: Usage | None) -> ModelError:
    """The answer ended without its end."""
    logger.warning("Model %s, may be tried again: the stream ended in the middle of the answer", model)
    return ModelError(BROKEN, transient=True, usage=usage)


def unnamed() -> ModelError:
    """Neither the request nor the provider names a model."""
    logger.error("No model is named: give PydanticAIProvider a default, or the agent a model (provider:model)")
    return ModelError(MISCONFIGURED)


def _transient(error: Exception, status: int | None) -> bool:
    if isinstance(error, (library.ModelQuotaExceededError, library.ModelRequestRejectedError)):
        return False  # exhausted credit also says 429: waiting does not fill it
    if status is not None:
        return status in TRY_AGAIN or status >= 500
    # what is left has no status: a connection, a time-out, an error inside a stream, an answer of no known form
    return isinstance(error, NO_STATUS)


def _is_too_long(error: Exception, status: int | None) -> bool:
    return status == 413 or isinstance(error, library.ModelContextWindowExceededError)


def _sentence(error: Exception, status: int | None) -> str:
    if _is_too_long(error, status):
        return SHOWN[413]
    if isinstance(error, library.ModelQuotaExceededError):
        return SHOWN[402]
    if status is not None:
        return SHOWN.get(status) or (SHOWN[400] if status < 500 else ModelError.message)
    if isinstance(error, (library.UserError, ImportError)):
        return MISCONFIGURED
    return BROKEN if _transient(error, status) else ModelError.message


def _advice(error: Exception, status: int | None) -> str:
    if isinstance(error, library.ModelQuotaExceededError):
        status = 402
    advice = ADVICE.get(status or 0)
    return f"{advice}. " if advice else ""
