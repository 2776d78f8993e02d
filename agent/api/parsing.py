"""How a request is read: bounded, strict, and never further than its first fault."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import IO, Any, Final
from urllib.parse import unquote

from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.serializers import BaseSerializer, Serializer

from agent.domain.proposals import ProposalCursor
from agent.domain.text import is_exact
from agent.errors import Invalid, NotFound

BODY_LIMIT: Final = 1 << 20
ID_MAX: Final = 255
NUMBER_MAX: Final = 2**31 - 1  # no frame has a higher number, and no column overflows
JSON_TYPE: Final = "application/json"

_DIGITS = re.compile(r"[0-9]+\Z")
_VISIBLE_ASCII = re.compile(r"[\x21-\x7e]{1,200}\Z")


class JsonParser(BaseParser):
    """Strict JSON of at most 1 MiB that holds one object."""

    media_type = JSON_TYPE

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        return json_object(stream.read(BODY_LIMIT + 1))


CURSOR: Final = {"createdAt", "id"}
INSTANT_MAX: Final = 2**53


def read_body(request: Request) -> dict[str, Any]:
    """The JSON object of the request; an empty body is an empty object."""
    inner = request._request
    if _declared_length(request) > BODY_LIMIT:
        raise _too_large()
    media_type = (inner.content_type or "").lower()
    if media_type != JSON_TYPE:
        # Also without a declared length: a client that streams its body does not say how long it is.
        if not inner.read(1):
            return {}
        raise UnsupportedMediaType(media_type or "unknown", detail=f"Send {JSON_TYPE}.")
    raw = inner.read(BODY_LIMIT + 1)
    return json_object(raw) if raw.strip() else {}


def parse(kind: type[Serializer[Any]], body: Mapping[str, Any]) -> dict[str, Any]:
    """The checked values of a body; `Invalid` names every field that is wrong."""
    serializer = kind(data=body)
    if serializer.is_valid():
        values: dict[str, Any] = serializer.validated_data
        return values
    raise _refusal(serializer)


def path_id(value: str) -> str:
    """An id of a path; what no column can hold is unknown before anybody is asked."""
    if len(value) > ID_MAX or not is_exact(value):
        raise NotFound
    return value


def limit_of(request: Request, *, default: int, maximum: int) -> int:
    """The query's `limit`, cut to its maximum."""
    value = request.query_params.get("limit")
    if value is None:
        return default
    limit = _number(value, maximum)
    if not limit:
        raise Invalid.field("limit", "a whole number from 1")
    return limit


def cursor_of(request: Request) -> int:
    """The number of the last frame that the client has: `after`, else `Last-Event-ID`, else 0."""
    name, value = "after", request.query_params.get("after")
    if value is None:
        name, value = "Last-Event-ID", request.headers.get("Last-Event-ID")
    if value is None:
        return 0
    cursor = _number(value, NUMBER_MAX)
    if cursor is None:
        raise Invalid.field(name, "a whole number from 0")
    return cursor


def proposal_cursor_of(request: Request) -> ProposalCursor | None:
    """Where a list of proposals goes on: the query's `after`, JSON `{createdAt, id}`, once or twice URI-encoded."""
    value = request.query_params.get("after")
    if value is None:
        return None
    try:
        given = json_object(unquote(value).encode("utf-8", "surrogatepass"))
    except Invalid:
        given = {}
    created_at, last = given.get("createdAt"), given.get("id")
    if (
        type(created_at) is not int
        or abs(created_at) > INSTANT_MAX
        or not isinstance(last, str)
        or set(given) != CURSOR
    ):
        raise Invalid.field("after", "the cursor of X-Action-Proposals-Next")
    return ProposalCursor(created_at=created_at, id=last)


def idempotency_key_of(request: Request) -> str | None:
    return idempotency_key(request.headers.get("Idempotency-Key"), "Idempotency-Key")


def idempotency_key(value: object, name: str) -> str | None:
    """A key as it may be; None when there is none."""
    if value is not None and not (isinstance(value, str) and _VISIBLE_ASCII.match(value)):
        raise Invalid.field(name, "1 to 200 visible ASCII characters")
    return value


def request_id_of(request: Request) -> str | None:
    """The caller's own id of the request, where it has one that fits a log line."""
    value = request.headers.get("X-Request-ID", "")
    return value if _VISIBLE_ASCII.match(value) else None


def query_text(request: Request, name: str) -> str | None:
    """A text of the query, to be used as a name."""
    value = request.query_params.get(name)
    if value is not None and (not 1 <= len(value) <= ID_MAX or not is_exact(value)):
        raise Invalid.field(name, f"1 to {ID_MAX} characters, without NUL")
    return value


def _number(value: str, maximum: int) -> int | None:
    """A whole number, cut to the maximum; None for anything else. Long ones are never converted."""
    if not _DIGITS.match(value):
        return None
    digits = value.lstrip("0")
    return maximum if len(digits) > 18 else min(int(digits or "0"), maximum)


def _declared_length(request: Request) -> int:
    value = request.META.get("CONTENT_LENGTH") or "0"
    return int(value) if _DIGITS.match(value) and len(value) < 19 else 0


def json_object(raw: bytes) -> dict[str, Any]:
    """The object that these bytes are as JSON; `Invalid` for anything else."""
    if len(raw) > BODY_LIMIT:
        raise _too_large()
    try:
        value = json.loads(raw.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):  # not UTF-8, not JSON, an endless number, or nested too deep
        raise Invalid("The body is not valid JSON.") from None
    if not isinstance(value, dict):
        raise Invalid("The body must be a JSON object.")
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _too_large() -> Invalid:
    return Invalid(f"A body may have {BODY_LIMIT} bytes.", code="too_large")


def _refusal(serializer: BaseSerializer[Any]) -> Invalid:
    found = list(_flat(serializer.errors))
    fields: dict[str, list[str]] = {}
    for name, error in found:
        fields.setdefault(name, []).append(str(error))
    codes = {getattr(error, "code", None) for _, error in found}
    own = codes & OWN_CODES
    name, texts = next(iter(fields.items()))
    return Invalid(f"{name}: {texts[0]}", code=own.pop() if len(codes) == 1 and own else None, fields=fields)


OWN_CODES: Final = frozenset({"bad_capabilities", "empty_message"})


def _flat(found: Any, path: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401  (whatever a serializer nests)
    """Every error with the dotted path of its field."""
    if isinstance(found, Mapping):
        for name, inner in found.items():
            whole = name == "non_field_errors"
            yield from _flat(inner, path if whole else f"{path}.{name}" if path else str(name))
    elif isinstance(found, list):
        for place, inner in enumerate(found):
            nested = isinstance(inner, Mapping)
            yield from _flat(inner, f"{path}.{place}" if nested else path) if not nested or inner else ()
    else:
        yield path, found
