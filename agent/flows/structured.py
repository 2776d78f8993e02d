"""The step `structured:<i>:<n>`: the answer in the form that the agent declares (spec 03 §9).

A call of its own, shown the question and the answer alone. Its value stands as the result of a read that no model has
called: on the answer's message, in the table, in the stream.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from agent.domain import frames
from agent.domain.commands import RecordToolCall
from agent.domain.ids import new_id
from agent.domain.model_calls import Frame, Json
from agent.domain.results import result_of
from agent.domain.runs import Run
from agent.domain.states import ToolCallStatus, ToolType
from agent.flows import events, spans
from agent.flows.answers import Told
from agent.flows.journal import Attempt
from agent.flows.judging import Judge
from agent.flows.settlement import Leftovers
from agent.flows.side_call import SideCall
from agent.registry import NotOfForm, parsed
from agent.store.base import AgentStore

NAME = "structured_output"
READ = "read"
SYSTEM = (
    "You are given a question and its answer. Say what the answer says as one JSON value of the form that is asked "
    "for, and nothing else. Add nothing that the answer does not say."
)


class Structuring:
    """One try of it in the hands of one worker; `number` counts the tries from 0."""

    counted = True

    def __init__(
        self,
        store: AgentStore,
        run: Run,
        call: SideCall,
        *,
        number: int,
        repairs: int,
        schema: Mapping[str, Json],
        kind: type[BaseModel] | None,
        question: str,
        wrong: Mapping[str, Any] | None,
        judge: Judge,
    ) -> None:
        self._store, self._run, self._call = store, run, call
        self._schema, self._kind, self._judge = schema, kind, judge
        self._question, self._wrong = question, wrong
        self.name, self.number, self.repairs = call.key, number, repairs
        self.found: Mapping[str, Any] = {}

    async def run(self, attempt: Attempt, told: Told) -> None:
        """Ask for the value, judge its text, and read it."""
        self._call.begin(attempt)
        asked = self._call.ask(SYSTEM, self._text(told["text"]), schema=self._schema)
        text = (await spans.around(self._run, spans.STRUCTURED, asked)).text
        verdict = await self._judge(text)
        if verdict.verdict == "reject":
            self.found = {"reason": verdict.reason}
            return
        text = verdict.text if verdict.verdict == "replace" else text
        try:
            self.found = {"value": parsed(self._kind, text)}
        except NotOfForm as problem:
            self.found = {"error": str(problem), "text": text}

    def record(self, told: Told) -> dict[str, Any]:
        """The rows of the call, and of the read that it stands as."""
        self._call.record(self._store, message_id=told["messageId"])
        if "value" not in self.found:
            return dict(self.found)
        call = {
            "id": new_id(),
            "providerCallId": f"structured-{self._run.id}",
            "name": NAME,
            "input": {},
            "kind": READ,
        }
        self._keep(told["messageId"], call, self.found["value"])
        return {**self.found, "call": call}

    def told(self, told: Told, payload: Mapping[str, Any]) -> Told:
        """The answer as it was: its call is told by `frames`."""
        return told

    def frames(self, payload: Mapping[str, Any]) -> list[Frame]:
        """The call with its result."""
        return call_frames(payload)

    def leftovers(self) -> Leftovers:
        """What was spent and is not recorded."""
        return self._call.leftovers()

    def _keep(self, message_id: str, call: dict[str, Any], value: Json) -> None:
        store, run = self._store, self._run
        store.set_message_tool_calls(message_id, [call])
        store.set_message_tool_results(message_id, [result_of(call, {"output": value})])
        store.record_tool_call(
            RecordToolCall(
                id=call["id"],
                provider_call_id=call["providerCallId"],
                message_id=message_id,
                thread_id=run.thread_id,
                run_id=run.id,
                actor_ref=run.actor.ref,
                tenant_ref=run.actor.tenant_ref,
                agent_name=run.agent_name,
                tool_name=NAME,
                tool_type=ToolType.READ,
                input=call["input"],
                output=value,
                status=ToolCallStatus.AUTO_EXECUTED,
                executed_by_ref=run.actor.ref,
            )
        )
        events.tool_settled(store, run, call, tool_type=ToolType.READ, status=ToolCallStatus.AUTO_EXECUTED)

    def _text(self, answer: str) -> str:
        parts = [f"Question:\n{self._question}", f"Answer:\n{answer}"]
        if self._wrong is not None:
            parts.append(f"An earlier try:\n{self._wrong['text']}")
            parts.append(f"What is wrong with it:\n{self._wrong['error']}")
        return "\n\n".join([*parts, f"JSON Schema of the form:\n{json.dumps(self._schema)}"])


def call_frames(payload: Mapping[str, Any]) -> list[Frame]:
    """The frames of a recorded value; none where there is no value."""
    call = payload.get("call")
    if call is None:
        return []
    return [
        frames.tool_input_start(call["id"], call["name"], call["kind"]),
        frames.tool_input_available(call["id"], call["name"], call["kind"], call["input"]),
        frames.tool_result(result_of(call, {"output": payload["value"]})),
    ]
