"""What an agent asks before it answers: `intake:ask`, `await:<callId>`, `intake:answers` (spec 03 §3, 07 §6).

The questions are a call of the built-in tool `ask` that no model has made: on a message of its own, in the table, in
the stream, and in what the first model call is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from agent.domain import frames
from agent.domain.commands import AppendMessage
from agent.domain.ids import new_id
from agent.domain.model_calls import Frame
from agent.domain.questions import ASK
from agent.domain.results import INTAKE, Payload, card_frames, put_first, result_of
from agent.domain.runs import Run
from agent.flows import events
from agent.flows.answers import Told
from agent.flows.call_rows import CallRows
from agent.flows.journal import Unit
from agent.store.base import AgentStore

ANSWERS = "intake:answers"


class Intake:
    """The questions of one run, as it recorded that it asks them; `told` and `results` are what its model is shown."""

    told: Told

    def __init__(self, store: AgentStore, run: Run, asked: Mapping[str, Any]) -> None:
        self._store, self._run, self._asked = store, run, dict(asked)
        self.results: list[dict[str, Any]] = []

    @property
    def is_over(self) -> bool:
        """Whether the answers, or that there are none, are recorded."""
        return bool(self.results)

    @property
    def waits_for(self) -> str:
        """The call that the user has to settle."""
        return str(self.told["toolCalls"][0]["id"])

    def go_on(self, unit: Unit) -> list[Frame]:
        """Record the questions, and the answers once they are there; the frames of what is new."""
        self.told = cast(Told, unit.write(INTAKE, self._ask))
        (call,) = self.told["toolCalls"]
        made = _card(call) if unit.steps else []
        recorded, rows = len(unit.steps), CallRows(self._store, self._run, self.told, terminal=(), mode="")
        decided = rows.decision(unit, call)
        if decided is None:
            return made
        self.results = [result_of(call, decided)]
        unit.write(ANSWERS, self._answered, rows, decided)
        is_new = len(unit.steps) > recorded
        settled = [*card_frames(call["id"], None, decided), frames.tool_result(self.results[0])]
        return made + settled if is_new else made

    def _ask(self) -> dict[str, Any]:
        """The message that asks, with its call."""
        run, call_id, message_id = self._run, new_id(), new_id()
        asked = {"id": call_id, "providerCallId": f"intake-{run.id}", "name": ASK, "input": self._asked, "kind": ASK}
        said = AppendMessage(
            id=message_id,
            thread_id=run.thread_id,
            role="assistant",
            content="",
            tool_calls=[asked],
            agent_name=run.agent_name,
            persona=run.persona,
            run_id=run.id,
        )
        told = {"messageId": message_id, "text": "", "toolCalls": [asked]}
        self._store.append_message(said)
        events.message_stored(self._store, said, actor=run.actor, thread_id=run.thread_id)
        CallRows(self._store, run, told, terminal=(), mode="").ask(asked, self._asked)
        return told

    def _answered(self, rows: CallRows, decided: Payload) -> dict[str, Any]:
        rows.save(self.results)
        return {"answers": decided["output"].get("answers")}


def _card(call: Mapping[str, Any]) -> list[Frame]:
    announced = frames.tool_input_available(call["id"], call["name"], call["kind"], call["input"])
    return [announced, *card_frames(call["id"], put_first(call), None)]
