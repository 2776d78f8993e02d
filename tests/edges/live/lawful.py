"""Names that exist, for a machine that only knows what a name looks like: else every send of its would be refused."""

from __future__ import annotations

import os
from typing import Any

import schemathesis

NAMES = {"agent": "desk", "defaultAgent": "desk", "model": "small"}
UNKNOWN_HERE = ("persona", "threadId", "attachments", "regenerate")  # none exist, or they need what a turn left behind


@schemathesis.hook
def map_body(context: object, body: Any) -> Any:
    """Half of the bodies get lawful names."""
    if not isinstance(body, dict) or len(str(body)) % 2:
        return body
    named = {name: NAMES[name] if name in NAMES and value else value for name, value in body.items()}
    return {name: value for name, value in named.items() if name not in UNKNOWN_HERE}


@schemathesis.hook
def map_path_parameters(context: object, path_parameters: Any) -> Any:
    """Half of the paths name the thread and the message that are there; of the queue, a message that waits."""
    if not isinstance(path_parameters, dict) or len(str(path_parameters)) % 2:
        return path_parameters
    waits = context.operation.path.startswith("/agent/queue/")  # type: ignore[attr-defined]
    message_id = os.environ["QUEUED_ID" if waits else "MESSAGE_ID"]
    there = {"thread_id": os.environ["THREAD_ID"], "message_id": message_id}
    return {name: there.get(name, value) for name, value in path_parameters.items()}
