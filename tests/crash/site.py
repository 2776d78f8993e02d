"""The agent whose turns are broken off: it thinks, asks three reads at once of which one fails, and answers."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from agent.domain.actor import Actor
from agent.domain.canonical import compact_json
from agent.domain.model_calls import FrameEmitter, ModelRequest, Reply, ReplyCall, Usage
from agent.domain.windows import History
from agent.processors import InputPrompt, ProcessorContext, Verdict, passed, replaced
from agent.providers.scripted import WORD
from agent.registry import Handoff, ToolContext, agent, tool
from tests.crash.mortal import here, plan, shown, touched

CALLS = (
    ReplyCall(id="a", name="look", input={"number": 7}),
    ReplyCall(id="b", name="weigh", input={"number": 7}),
    ReplyCall(id="c", name="lose", input={"number": 13}),
)
ASKED = Reply(
    text="Looking now.",
    reasoning="Two of them.",
    tool_calls=CALLS,
    usage=Usage(input_tokens=100, output_tokens=20),
    stop="tool_calls",
    provider_state='{"signature": "\\u00e9=="}',
)
ACTION = ReplyCall(id="a", name="cancel", input={"number": 7})
PROPOSED = ("refund", "transfer")  # tools whose calls become proposals; the second one holds when it is lost
ASKS = ("ask_counter", "start_counter")  # another agent
ANSWERED = Reply(text="Seven is here, thirteen is lost.", usage=Usage(input_tokens=150, output_tokens=7))
SUMMARIZED = Reply(text="They asked for seven and thirteen.", usage=Usage(input_tokens=90, output_tokens=9))
ASIDE = {"structured_output": '{"found": 7}', "follow_ups": '["And 8?"]'}
PIECES = (14, 6)  # how many frames each of the two model calls emits


def pieces(reply: Reply) -> list[dict[str, Any]]:
    """The frames of a reply, a word a piece."""
    said = [("reasoning", word) for word in WORD.findall(reply.reasoning or "")]
    said += [("text", word) for word in WORD.findall(reply.text)]
    told: list[dict[str, Any]] = [{"kind": kind, "text": word} for kind, word in said]
    for call in reply.tool_calls:
        told.append({"kind": "tool-input-start", "id": call.id, "name": call.name})
        told.append({"kind": "tool-input-delta", "id": call.id, "delta": "{}"})
        told.append({"kind": "tool-input-available", "id": call.id, "name": call.name, "input": call.input})
    return told


def digest(request: ModelRequest) -> str:
    """What the model was asked, as a short name: the same question has the same."""
    shown_messages = [
        [m.role, m.content, [[c.id, c.name, c.input] for c in m.tool_calls], [[r.id, r.output] for r in m.tool_results]]
        for m in request.messages
    ]
    states = [message.provider_state for message in request.messages]
    asked = compact_json([request.system, shown_messages, states, [one.name for one in request.tools]])
    return hashlib.sha256(asked.encode()).hexdigest()[:12]


class StillThere:
    """Everybody who asked for something is still there."""

    def resolve(self, ref: str, tenant_ref: str | None) -> Actor | None:
        return Actor(ref, (), tenant_ref)


class Found(BaseModel):
    """What the answer has found."""

    found: int


class Model:
    """Says a fixed thing at each step of a turn."""

    def models(self) -> list[str]:
        return ["mortal"]

    async def stream(self, request: ModelRequest, emit: FrameEmitter) -> Reply:
        if request.purpose == "history_summary":
            return _folded(request)
        if request.purpose in ASIDE:
            return _aside(request)
        step = int((request.idempotency_key or "").rpartition(":")[2])
        touched(f"model {step} {digest(request)}")
        reply = _reply(request)
        before = plan.stored + 1  # step-start
        for number, frame in enumerate(pieces(reply)):
            here(f"model:{step}:{number}")
            emit(frame)
            if plan.slow:
                await shown(before + number + 1)
        here(f"model:{step}:{len(pieces(reply))}")
        return reply


def _reply(request: ModelRequest) -> Reply:
    if not request.tools or request.messages[-1].tool_results:
        return ANSWERED
    first = request.tools[0].name
    if first in ASKS:
        return replace(ASKED, tool_calls=(ReplyCall(id="a", name=first, input={"task": "Count 7."}),))
    acts = first in {ACTION.name, "settle", *PROPOSED}
    return replace(ASKED, tool_calls=(replace(ACTION, name=first),)) if acts else ASKED


def _folded(request: ModelRequest) -> Reply:
    here("summary:begin")
    touched(f"model summary {digest(request)}")
    here("summary:end")
    return SUMMARIZED


def _aside(request: ModelRequest) -> Reply:
    here(f"{request.purpose}:begin")
    touched(f"model {request.purpose} {digest(request)}")
    here(f"{request.purpose}:end")
    return Reply(text=ASIDE[request.purpose], usage=Usage(input_tokens=30, output_tokens=3))


def masked(text: str, context: ProcessorContext) -> Verdict:
    """Nobody reads of the thirteen; incremental, for it is one word."""
    return replaced(text.replace("thirteen", "twelve+1")) if "thirteen" in text else passed()


masked.incremental, masked.lookback = True, 8  # type: ignore[attr-defined]


def briefed(prompt: InputPrompt, context: ProcessorContext) -> InputPrompt:
    """The model is told to be brief."""
    return replace(prompt, system=f"{prompt.system} Be brief.")


def _used(ctx: ToolContext, name: str) -> None:
    here(f"tool:{name}:begin")
    touched(f"tool {name} {ctx.idempotency_key}")
    here(f"tool:{name}:end")


def declare() -> None:
    """Declare the agent and its tools in the registry that is in force."""

    @tool
    def look(ctx: ToolContext, number: int) -> dict[str, Any]:
        """Look a number up."""
        _used(ctx, "look")
        return {"number": number, "found": True}

    @tool
    async def weigh(ctx: ToolContext, number: int) -> list[int]:
        """Weigh a number."""
        await asyncio.to_thread(_used, ctx, "weigh")
        return [number, 2 * number]

    @tool
    def lose(ctx: ToolContext, number: int) -> int:
        """Lose a number."""
        _used(ctx, "lose")
        raise ValueError(number)

    @tool(kind="action")
    def cancel(ctx: ToolContext, number: int) -> dict[str, int]:
        """Cancel a number, once a person has agreed."""
        _used(ctx, "cancel")
        return {"cancelled": number}

    def moves(name: str, on_lost: str) -> Callable[..., Any]:
        def move(ctx: ToolContext, number: int) -> dict[str, int]:
            """Move money, once a person has agreed."""
            _used(ctx, name)
            return {"moved": number}

        return tool(name=name, kind="action", approval_mode="independent", on_lost=on_lost)(move)

    for name, on_lost in zip(PROPOSED, ("retry", "hold"), strict=True):
        agent(name=f"{name}s", prompt="You move.", tools=[moves(name, on_lost)])(type(name, (), {}))

    @tool(kind="action", requires_approval=False, on_lost="hold")
    def settle(ctx: ToolContext, number: int) -> int:
        """Settle a number, which must not happen twice."""
        _used(ctx, "settle")
        return number

    agent(name="counter", prompt="You count.", tools=[])(type("Counter", (), {}))
    for name, detached in (("asking", False), ("leaving", True)):
        handoff = Handoff("counter", detached=detached)
        agent(name=name, prompt="You ask.", tools=[], handoffs=[handoff])(type(name, (), {}))
    agent(name="holding", prompt="You settle.", tools=[settle])(type("Holding", (), {}))
    agent(name="acting", prompt="You cancel.", tools=[cancel])(type("Acting", (), {}))
    tools, window = [look, weigh, lose], History(max_messages=1, summarize=True)
    question = {"id": "why", "prompt": "Why?", "defaults": ["Because."]}
    agent(name="receiving", prompt="You count.", tools=[look], intake={"questions": [question]})(
        type("Receiving", (), {})
    )
    around: Any = {"input_processors": [briefed], "output_processors": [masked]}
    agent(name="shaped", prompt="You count.", tools=tools, output_type=Found, follow_ups=True, **around)(
        type("Shaped", (), {})
    )
    agent(name="mortal", prompt="You count.", tools=tools)(type("Mortal", (), {}))
    agent(name="forgetful", prompt="You count.", tools=tools, history=window)(type("Forgetful", (), {}))
