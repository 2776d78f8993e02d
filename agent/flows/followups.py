"""The step `followups:<i>`: what the user may want to ask next (spec 03 §9). It never fails a run."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from agent.domain.arguments import without_fence
from agent.domain.model_calls import Frame
from agent.domain.redaction import redact
from agent.domain.runs import Run
from agent.domain.text import clean_text
from agent.flows import spans
from agent.flows.answers import Told
from agent.flows.journal import Attempt
from agent.flows.judging import Judge
from agent.flows.settlement import Leftovers
from agent.flows.side_call import SideCall
from agent.store.base import AgentStore

SYSTEM = (
    "You are given a question and its answer. Suggest {count} short questions that the person may want to ask next, "
    "in the language of the question and in the person's own words. Answer with a JSON array of {count} strings, and "
    "nothing else."
)
LONGEST = 300  # characters of a suggestion

logger = logging.getLogger("agent.followups")


class Suggesting:
    """The effect in the hands of one worker."""

    counted = True

    def __init__(self, store: AgentStore, run: Run, call: SideCall, *, count: int, question: str, judge: Judge) -> None:
        self._store, self._run, self._call = store, run, call
        self._count, self._question, self._judge = count, question, judge
        self.name = call.key
        self.found: Mapping[str, Any] = {}

    async def run(self, attempt: Attempt, told: Told) -> None:
        """Ask for suggestions; whatever goes wrong, there are none."""
        self._call.begin(attempt)
        try:
            self.found = {"items": await spans.around(self._run, spans.FOLLOW_UPS, self._asked(told["text"]))}
        except Exception as error:
            if getattr(error, "agent_signal", False):
                raise
            why = redact(f"{type(error).__name__}: {error}")
            logger.warning("run %s goes on without follow-ups: %s", self._run.id, why)
            self.found = {"items": []}

    def record(self, told: Told) -> dict[str, Any]:
        """The rows of the call, and the suggestions on the answer's message."""
        self._call.record(self._store, message_id=told["messageId"])
        if self.found["items"]:
            self._store.set_message_follow_ups(told["messageId"], self.found["items"])
        return dict(self.found)

    def told(self, told: Told, payload: Mapping[str, Any]) -> Told:
        """The answer as it was."""
        return told

    def frames(self, payload: Mapping[str, Any]) -> list[Frame]:
        """None: a client reads them from the message."""
        return []

    def leftovers(self) -> Leftovers:
        """What was spent and is not recorded."""
        return self._call.leftovers()

    async def _asked(self, answer: str) -> list[str]:
        reply = await self._call.ask(
            SYSTEM.format(count=self._count), f"Question:\n{self._question}\n\nAnswer:\n{answer}"
        )
        texts = [await self._judged(text) for text in suggestions(reply.text)]
        return [text for text in texts if text][: self._count]

    async def _judged(self, text: str) -> str | None:
        """The suggestion as it may be seen; None when it is refused."""
        verdict = await self._judge(text)
        if verdict.verdict == "reject":
            return None
        return verdict.text.strip() if verdict.verdict == "replace" else text


def suggestions(text: str) -> list[str]:
    """The questions in a reply; anything but a JSON array of strings holds none."""
    try:
        read = json.loads(without_fence(text))
    except (ValueError, RecursionError):
        return []
    if not isinstance(read, list) or not all(isinstance(each, str) for each in read):
        return []
    texts = (clean_text(" ".join(each.split())) for each in read)
    return list(dict.fromkeys(each for each in texts if each and len(each) <= LONGEST))
