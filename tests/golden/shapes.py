"""The turns whose journals are kept: what was said before, what is sent, what the model and the tools do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from pydantic import BaseModel

from agent.domain.model_calls import FrameEmitter, ModelRequest, Reply, ReplyCall, Usage
from agent.errors import ToolError
from agent.processors import InputPrompt, ProcessorContext, Verdict, passed, replaced
from agent.registry import (
    Confirm,
    Handoff,
    Preflight,
    PromptContext,
    Tool,
    ToolContext,
    agent,
    completed,
    denied,
    persona,
    ready,
    tool,
)

USAGE = Usage(input_tokens=40, output_tokens=8, cache_read_tokens=12)
TALK = (
    ("user", "Good morning."),
    ("assistant", "Good morning. What can I do?"),
    ("user", "Nothing yet."),
    ("assistant", "Then I wait."),
)


def asks(*calls: ReplyCall, text: str = "") -> Reply:
    return Reply(text=text, tool_calls=calls, usage=USAGE, stop="tool_calls")


def says(text: str, *, cost: str | None = None, **fields: Any) -> Reply:
    reported = None if cost is None else Decimal(cost)
    return Reply(text=text, usage=replace(USAGE, reported_cost_usd=reported), **fields)


def look(number: int, call_id: str = "call_1") -> ReplyCall:
    return ReplyCall(id=call_id, name="look_up", input={"number": number, "fast": True})


def cancel(number: int, call_id: str = "call_1") -> ReplyCall:
    return ReplyCall(id=call_id, name="cancel", input={"number": number})


QUESTIONS: list[dict[str, Any]] = [
    {"id": "size", "prompt": "Which size?", "options": [{"value": "s", "label": "Small"}], "defaults": ["s"]},
    {"id": "note", "prompt": "Anything else?"},
]


def ask() -> ReplyCall:
    return ReplyCall(id="q", name="ask", input={"questions": QUESTIONS})


def task(tool: str) -> ReplyCall:
    return ReplyCall(id="call_1", name=tool, input={"task": "Where is it?"})


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A turn. `old`: from before `agent:selected-history`, so its `load:thread` holds the whole thread."""

    script: Sequence[Reply]
    before: Sequence[tuple[str, str]] = ()
    send: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    old: bool = False
    decided: str = "approved"  # what a person says whenever the turn waits


SHAPES = {
    "plain": Shape(script=[says("Hello.", reasoning="A greeting.", reasoning_ms=5)]),
    "talk": Shape(script=[says("Hello again.")], before=TALK, settings={"HISTORY": {"max_messages": 2}}),
    "reads": Shape(
        script=[
            asks(look(7, "a"), look(8, "b"), text="Two lookups."),
            asks(look(9, "a")),
            says("All three were shipped.", provider_state='{"signature": "x"}'),
        ]
    ),
    "failing": Shape(
        script=[asks(look(7, "a"), look(13, "b"), ReplyCall(id="c", name="no_such", input={})), says("13 is lost.")]
    ),
    "terminal": Shape(script=[asks(ReplyCall(id="a", name="hand_off", input={}))]),
    "terminal-named": Shape(script=[asks(look(7, "a")), asks(ReplyCall(id="a", name="hand_off", input={}))]),
    "reported-cost": Shape(script=[says("Hello.", cost="0.0125")]),
    "persona": Shape(script=[says("Good day.")], send={"persona": "formal"}),
    "contributed": Shape(script=[says("It is Monday.")], send={"agent": "dated"}),
    "regenerate": Shape(script=[says("Another one.")], before=TALK, send={"regenerate": True}),
    "blank": Shape(script=[asks(look(7)), says(" ")]),
    "summary": Shape(
        script=[asks(look(7)), says("It was shipped.")],
        before=TALK,
        settings={"HISTORY": {"max_messages": 3, "summarize": True}},
    ),
    "approved": Shape(
        script=[asks(cancel(7, "a"), cancel(13, "b"), text="May I?"), says("7 is cancelled.")],
        send={"agent": "acting"},
    ),
    "rejected": Shape(
        script=[asks(cancel(7), look(7, "b")), says("It stays.")], send={"agent": "acting"}, decided="rejected"
    ),
    "expired": Shape(
        script=[asks(cancel(7), look(7, "b")), says("Nobody answered.")],
        send={"agent": "acting"},
        settings={"APPROVAL_TTL_SECONDS": 60},
        decided="expired",
    ),
    "proposed": Shape(script=[asks(cancel(7), look(7, "b"), text="I ask for it.")], send={"agent": "proposing"}),
    "delegated": Shape(
        script=[asks(task("ask_helper"), text="I ask."), says("It was shipped.")],
        send={"agent": "asking-others"},
        decided="delegated",
    ),
    "detached": Shape(script=[asks(task("start_helper")), says("Soon.")], send={"agent": "asking-others"}),
    "answered": Shape(
        script=[asks(ask(), text="First."), says("In red.")], send={"agent": "asking"}, decided="answered"
    ),
    "skipped": Shape(script=[asks(ask()), says("A small one.")], send={"agent": "asking"}, decided="skipped"),
    "intake": Shape(
        script=[asks(look(7)), says("In red, and it was shipped.")], send={"agent": "receiving"}, decided="answered"
    ),
    "intake-skipped": Shape(script=[says("A small one.")], send={"agent": "receiving"}, decided="skipped"),
    "denied": Shape(script=[asks(cancel(0, "a"), cancel(1, "b")), says("Nothing to do.")], send={"agent": "acting"}),
    "unasked": Shape(
        script=[asks(ReplyCall(id="a", name="note", input={"number": 7})), says("Noted.")], send={"agent": "acting"}
    ),
    "followed-up": Shape(script=[asks(look(7)), says("It was shipped.")], send={"agent": "curious"}),
    "structured": Shape(script=[says("Order 7 was shipped.")], send={"agent": "formed"}),
    "processed": Shape(
        script=[asks(look(7), text="Number 7, then."), says("Number 7 was shipped.")], send={"agent": "guarded"}
    ),
    "old-summary": Shape(
        script=[says("Hello again.")],
        before=TALK,
        settings={"HISTORY": {"max_messages": 2, "summarize": True}},
        old=True,
    ),
    "old-plain": Shape(script=[says("Hello again.")], before=TALK, settings={"HISTORY": {"max_messages": 2}}, old=True),
    "old-reads": Shape(
        script=[asks(look(7), text="One moment."), says("It was shipped.")],
        before=TALK,
        settings={"HISTORY": {"max_messages": 3}},
        old=True,
    ),
}

ASIDE = {
    "history_summary": ["They said good morning."],
    "follow_ups": ['["When was it?", "And number 8?"]'],
    "structured_output": ['{"number": "seven"}', '{"number": 7, "shipped": true}'],
}


class Order(BaseModel):
    """What an answer says of an order."""

    number: int
    shipped: bool = False


def masked(text: str, context: ProcessorContext) -> Verdict:
    """No number 7 is shown."""
    return replaced(text.replace("7", "#")) if "7" in text else passed()


def briefed(prompt: InputPrompt, context: ProcessorContext) -> InputPrompt:
    """The model is told to be brief."""
    return InputPrompt(system=f"{prompt.system} Be brief.", messages=prompt.messages)


HELPER = "You are asked by others."


class Player:
    """A model that says at each step what the shape's script holds, and keeps what it was asked."""

    def __init__(self, shape: Shape) -> None:
        self._script = shape.script
        self.asked: dict[int, ModelRequest] = {}
        self.aside: Counter[str] = Counter()  # calls beside those that the user follows, by their purpose

    async def stream(self, request: ModelRequest, emit: FrameEmitter) -> Reply:
        if request.purpose in ASIDE:
            self.aside[request.purpose] += 1
            return says(ASIDE[request.purpose]["What is wrong with it" in request.messages[0].content])
        if request.system == HELPER:
            return says("With the carrier.")
        step = int((request.idempotency_key or "").rpartition(":")[2])
        self.asked[step] = request
        reply = self._script[step]
        emit({"kind": "text", "text": reply.text})
        return reply


def declare(
    *, prompt: str = "You help.", without: Sequence[str] = (), terminal: Sequence[str] = ("hand_off",)
) -> Counter[str]:
    """The agents and tools of all shapes; how often each tool's body ran is counted."""
    ran: Counter[str] = Counter()

    @tool(terminal="look_up" in terminal)
    def look_up(number: int, fast: bool = False) -> dict[str, Any]:
        """Where an order is."""
        ran["look_up"] += 1
        if number == 13:
            raise RuntimeError("no such order")
        return {"status": "shipped", "number": number}

    @tool(terminal="hand_off" in terminal)
    def hand_off() -> str:
        """Hand the conversation to a person."""
        ran["hand_off"] += 1
        return "handed off"

    @tool
    class Cancel(Tool):
        """Cancel an order."""

        kind = "action"
        confirm = Confirm("Cancel order {number}", "Cancel")

        def preflight(self, input: Any, ctx: ToolContext, phase: str) -> Preflight:  # noqa: A002
            if input.number == 0:
                return denied("There is no order 0.")
            return completed({"cancelled": "before"}) if input.number == 1 else ready()

        def execute(self, ctx: ToolContext, number: int) -> dict[str, int]:
            ran["cancel"] += 1
            if number == 13:
                raise ToolError("It has left.")
            return {"cancelled": number}

    @tool(kind="action", requires_approval=False)
    def note(number: int) -> int:
        """Note a number."""
        ran["note"] += 1
        return number

    def today(context: PromptContext) -> str:
        ran["today"] += 1
        return "It is Monday."

    formal = persona("formal", "Formal", "You are formal.", allowed_tools=["look_up"])
    tools = [name for name in ("look_up", "hand_off") if name not in without]
    agent(name="desk", prompt=prompt, tools=tools, personas=[formal])(type("Desk", (), {}))
    agent(name="acting", prompt=prompt, tools=["cancel", "note", "look_up"])(type("Acting", (), {}))
    agent(name="proposing", prompt=prompt, tools=["cancel", "look_up"], approval_mode="independent")(
        type("Proposing", (), {})
    )
    agent(name="asking", prompt=prompt, tools=[], allow_ask=True)(type("Asking", (), {}))
    intake = {"preamble": "Two things first.", "questions": QUESTIONS}
    agent(name="receiving", prompt=prompt, tools=["look_up"], intake=intake)(type("Receiving", (), {}))
    agent(name="helper", prompt=HELPER, tools=[])(type("Helper", (), {}))
    others = [Handoff("helper"), Handoff("helper", detached=True)]
    agent(name="asking-others", prompt=prompt, tools=[], handoffs=others)(type("AskingOthers", (), {}))
    agent(name="dated", prompt=prompt, contributors=[today], tools=[])(type("Dated", (), {}))
    agent(name="curious", prompt=prompt, tools=["look_up"], follow_ups=True)(type("Curious", (), {}))
    agent(name="formed", prompt=prompt, tools=[], output_type=Order, follow_ups=True)(type("Formed", (), {}))
    guarding: Any = {"input_processors": [briefed], "output_processors": [masked]}
    agent(name="guarded", prompt=prompt, tools=["look_up"], **guarding)(type("Guarded", (), {}))
    return ran
