"""The step `process:output:<i>`: what becomes of a model's text, and the message that it is kept as (spec 11 §8)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agent.domain.model_calls import Frame
from agent.domain.processing import Verdict, passed
from agent.domain.runs import Run
from agent.domain.text import is_blank
from agent.flows.answers import Told, is_empty, keep_answer
from agent.flows.journal import Attempt
from agent.flows.processors import OUTPUT, Gate
from agent.flows.settlement import Leftovers
from agent.store.base import AgentStore

Judge = Callable[[str], Awaitable[Verdict]]


class Judging:
    """The effect in the hands of one worker; `gate` knows what followers have seen of the text.

    Where the answer was recorded by a worker before, `take_up` finds that out.
    """

    counted = False

    def __init__(
        self,
        store: AgentStore,
        run: Run,
        step: int,
        *,
        gate: Gate | None,
        take_up: Callable[[], Awaitable[Gate]],
        judge: Judge,
    ) -> None:
        self._store, self._run, self._judge = store, run, judge
        self._gate, self._take_up = gate, take_up
        self.name = f"{OUTPUT}{step}"
        self.found: Mapping[str, Any] = {}

    async def run(self, attempt: Attempt, told: Told) -> None:
        """Ask the processors; what is blank needs no judgement."""
        if self._gate is None:
            self._gate = await self._take_up()
        text: str = told["text"]
        verdict = await self._judge(text) if text else passed()
        if verdict.verdict == "reject":
            self.found = {"verdict": verdict.verdict, "reason": verdict.reason}
            return
        kept = verdict.text if verdict.verdict == "replace" else text
        self._gate.rest(kept)  # raises where a processor changed what it had let pass
        self.found = {"verdict": verdict.verdict, "text": "" if is_blank(kept) else kept}

    def record(self, told: Told) -> dict[str, Any]:
        """Keep the answer as it may be seen."""
        if "reason" in self.found:
            return dict(self.found)
        now = self.told(told, self.found)
        if is_empty(now):
            return {**self.found, "messageId": None}
        keep_answer(self._store, self._run, now)
        return {**self.found, "messageId": now["messageId"]}

    def told(self, told: Told, payload: Mapping[str, Any]) -> Told:
        """The answer with the text that was let pass; one that was changed is not given back in opaque form."""
        if "reason" in payload:
            return told
        dropped = {"providerState"} if payload["verdict"] == "replace" else set()
        return {name: value for name, value in told.items() if name not in dropped} | {
            "text": payload["text"],
            "messageId": payload.get("messageId", told["messageId"]),
        }

    def frames(self, payload: Mapping[str, Any]) -> list[Frame]:
        """What followers had not seen of it."""
        return [] if "reason" in payload or self._gate is None else self._gate.rest(payload["text"])

    def leftovers(self) -> Leftovers:
        """What was shown of a text that nobody has judged to its end."""
        return Leftovers(text="" if self._gate is None else self._gate.released)
