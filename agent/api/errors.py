"""Errors become statuses here, and nobody else knows HTTP."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.http import Http404, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from rest_framework import exceptions

from agent import errors
from agent.domain.ids import new_id
from agent.errors import AgentError

logger = logging.getLogger("agent.api")

STATUS_OF_CLASS: Final[Mapping[type[AgentError], int]] = {
    errors.Invalid: 400,
    errors.NotAuthenticated: 401,
    errors.NotAllowed: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.IdempotencyKeyReused: 422,
    errors.OverQuota: 429,
    errors.NotSupported: 501,
}
STATUS_OF_CODE: Final[Mapping[str, int]] = {  # where a code says more than its class
    "too_large": 413,
    "unsupported_type": 415,
    "size_mismatch": 422,
    "approval_expired": 410,
    "message_gone": 410,
    "cursor_expired": 410,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorAnswer:
    """An answer in the one shape that every error of this API has."""

    status: int
    message: str
    code: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def body(self) -> dict[str, Any]:
        code = {"code": self.code} if self.code else {}
        return {"message": self.message, **code, **self.extra}


def answer_to(error: Exception) -> ErrorAnswer | None:
    """How an error is told to the client; None for what nobody expected."""
    if isinstance(error, AgentError):
        return _of_ours(error)
    if isinstance(error, exceptions.APIException):
        return _of_rest_framework(error)
    return _of_django(error)


def fault(what: str, error: Exception) -> ErrorAnswer:
    """How a fault of ours is told: the log has it all, the client a reference to it."""
    reference = new_id()
    logger.error("%s failed (%s)", what, reference, exc_info=error)
    return ErrorAnswer(status=500, message=f"Something went wrong on our side (reference {reference}).")


def _of_ours(error: AgentError) -> ErrorAnswer | None:
    status = STATUS_OF_CODE.get(error.code) or next(
        (STATUS_OF_CLASS[kind] for kind in type(error).__mro__ if kind in STATUS_OF_CLASS), None
    )
    if status is None:
        return None
    extra: dict[str, Any] = {}
    if isinstance(error, errors.Invalid) and error.fields:
        extra["fields"] = error.fields
    if isinstance(error, errors.OverQuota):
        extra["period"] = error.period
    return ErrorAnswer(status=status, message=error.message, code=error.code, extra=extra)


def _of_rest_framework(error: exceptions.APIException) -> ErrorAnswer | None:
    if isinstance(error, (exceptions.NotAuthenticated, exceptions.AuthenticationFailed)):
        return ErrorAnswer(status=401, message=str(error.detail), code="not_authenticated")
    if isinstance(error, exceptions.Throttled):
        seconds: float | None = getattr(error, "wait", None)
        wait = {"Retry-After": str(math.ceil(seconds))} if seconds is not None else {}
        return ErrorAnswer(status=429, message=str(error.detail), headers=wait)
    if isinstance(error, (exceptions.ParseError, exceptions.ValidationError)):
        return ErrorAnswer(status=400, message="The request is not valid.", code="invalid_body")
    codes = {403: "forbidden", 404: "not_found", 415: "unsupported_type"}
    status = error.status_code
    return None if status == 500 else ErrorAnswer(status=status, message=str(error.detail), code=codes.get(status))


def _of_django(error: Exception) -> ErrorAnswer | None:
    if isinstance(error, Http404):
        return ErrorAnswer(status=404, message=errors.NotFound.message, code="not_found")
    if isinstance(error, PermissionDenied):
        return ErrorAnswer(status=403, message=errors.NotAllowed.message, code="forbidden")
    if isinstance(error, RequestDataTooBig):
        return ErrorAnswer(status=413, message="The request is too large.", code="too_large")
    if isinstance(error, (SuspiciousOperation, BadRequest, MultiPartParserError, UnreadablePostError)):
        return ErrorAnswer(status=400, message=errors.Invalid.message, code="invalid_body")
    return None
