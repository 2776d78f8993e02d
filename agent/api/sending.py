"""What a client sends to an agent, over HTTP or a socket: one body, one parser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.api.bodies import SendBody
from agent.api.parsing import parse
from agent.domain.canonical import sha256_hex
from agent.flows.starts import Send


def send_of(body: Mapping[str, Any], *, key: str | None, request_id: str | None = None) -> Send:
    """The checked message of a body; the fingerprint is that of the body as it came."""
    values = parse(SendBody, body)
    return Send(
        message=values.get("message"),
        thread_id=values.get("threadId"),
        agent=values.get("agent"),
        persona=values.get("persona"),
        model=values.get("model"),
        attachments=tuple(ref["mediaId"] for ref in values.get("attachments") or ()),
        page_context=values.get("pageContext"),
        regenerate=values["regenerate"],
        transient=values["transient"],
        mode=values["mode"],
        ui_capabilities=values.get("uiCapabilities"),
        request_id=request_id,
        idempotency_key=key,
        fingerprint=sha256_hex(body) if key is not None else None,
    )
