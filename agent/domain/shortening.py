"""Less of a conversation that is too long for its model."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agent.domain.model_calls import ShownMessage


def shortened(messages: Sequence[ShownMessage]) -> tuple[ShownMessage, ...] | None:
    """The same without its older half; None when nothing is there to leave out.

    The last user's message stays with all that follows it, and so does system text. What is left begins with a user's
    message, so it is as lawful as it was.
    """
    begins = [place for place, message in enumerate(messages) if message.role == "user"]
    if not begins:
        return None
    told = [place for place, message in enumerate(messages) if message.role != "system"]
    cuts = [place for place in begins if place > told[0]]
    if not cuts:
        return None
    sizes = [_size(message) for message in messages]
    cut = next((place for place in cuts if sum(sizes[place:]) <= sum(sizes) / 2), cuts[-1])
    return tuple(message for place, message in enumerate(messages) if place >= cut or message.role == "system")


def _size(message: ShownMessage) -> int:
    parts = [call.input for call in message.tool_calls] + [result.output for result in message.tool_results]
    return len(message.content) + sum(len(json.dumps(part, default=str)) for part in parts)
