"""The agent that is measured: 200 deltas, one read tool, 200 deltas, from a model that sleeps only when it is paced."""

from __future__ import annotations

from agent import History, agent, tool
from agent.domain.model_calls import ModelRequest
from agent.providers.scripted import ScriptedProvider, ScriptedReply, call

DELTAS = 200
SMALL_DELTAS = 5
SMALL_QUESTION = "hello"
QUESTION = "where is order 1042?"
PACED_DELTAS, PACED_MS = 250, 20  # fifty a second, for five seconds
ACTION_QUESTION = "pay order 1042 back"
PACED_QUESTION = "talk to me"
LONG_DELTAS, LONG_QUESTION = 3000, "talk to me for a minute"


@tool
def look_up_order(number: int) -> dict[str, object]:
    """Look up an order by its number."""
    return {"number": number, "status": "shipped"}


@agent(name="bench", prompt="You answer for a shop.", tools=[look_up_order], model="bench")
class BenchAgent:
    """Answers with one look-up; to a greeting it answers in five words."""


@tool(kind="action")
def pay_back(number: int) -> str:
    """Pay an order back."""
    return f"paid back {number}"


@agent(name="acting", prompt="You answer for a shop.", tools=[pay_back], model="bench")
class ActingAgent:
    """Asks for one action, which waits for a person."""


@agent(name="memory", prompt="You answer for a shop.", model="bench", history=History(max_messages=10, summarize=True))
class RememberingAgent:
    """Carries ten messages, and a summary of the others."""


def _answer(request: ModelRequest) -> ScriptedReply:
    last = request.messages[-1]
    if request.purpose == "history_summary":
        return ScriptedReply("They asked where their orders were, and were told.")
    if last.content == SMALL_QUESTION:
        return ScriptedReply(" word" * SMALL_DELTAS)
    if last.content == ACTION_QUESTION:
        return ScriptedReply(calls=[call("pay_back", number=1042)])
    if last.content == PACED_QUESTION:
        return ScriptedReply(" word" * PACED_DELTAS, delay_ms=PACED_MS)
    if last.content == LONG_QUESTION:
        return ScriptedReply(" word" * LONG_DELTAS, delay_ms=PACED_MS)
    if last.tool_results:
        return ScriptedReply(" word" * DELTAS)
    return ScriptedReply(" word" * DELTAS, calls=[call("look_up_order", number=1042)])


provider = ScriptedProvider(_answer, model="bench")
