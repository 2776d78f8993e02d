"""A model that says what it was told, and who it was told by when it may look that up."""

from __future__ import annotations

from agent.domain.model_calls import ModelRequest
from agent.providers.scripted import Answer, ScriptedProvider, ScriptedReply, call


def answer(request: ModelRequest) -> Answer:
    last = request.messages[-1]
    if last.tool_results:
        return str(last.tool_results[0].output)
    return ScriptedReply(calls=[call("whoami")]) if request.tools else "Nobody may look that up."


provider = ScriptedProvider(answer)
