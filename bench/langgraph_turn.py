"""The turn of `bench.turn` in LangGraph, run by the bench inside an environment of LangGraph's own.

Reads lines `{"turns": 20, "saver": "async"}` from its input and answers each with the samples as one JSON line.
"""

# This file runs where LangGraph is installed, which the project's own environment does not need.
# mypy: ignore-errors

from __future__ import annotations

import asyncio
import json
import os
import platform
import sys
import time
import uuid
from importlib.metadata import version

os.environ["LANGSMITH_TRACING"] = "false"

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

DELTAS = 200
CALL = {"name": "look_up_order", "args": '{"number": 1042}', "index": 0}
PACKAGES = ("langgraph", "langgraph-checkpoint-postgres", "langchain-core", "psycopg")


@tool
def look_up_order(number: int) -> dict:
    """Look up an order by its number."""
    return {"number": number, "status": "shipped"}


class FakeModel(BaseChatModel):
    """200 deltas and a tool call; after the tool's result 200 deltas more."""

    @property
    def _llm_type(self):
        return "fake"

    def bind_tools(self, tools, **kwargs):
        return self

    def _chunks(self, messages):
        for _ in range(DELTAS):
            yield ChatGenerationChunk(message=AIMessageChunk(content="word "))
        if not isinstance(messages[-1], ToolMessage):
            call = CALL | {"id": f"call_{uuid.uuid4().hex}"}
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[call]))

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        yield from self._chunks(messages)

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        for chunk in self._chunks(messages):
            yield chunk

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        return ChatResult(generations=[ChatGeneration(message=AIMessage("word " * DELTAS))])


MODEL = FakeModel().bind_tools([look_up_order])


def ask(state):
    return {"messages": [MODEL.invoke(state["messages"])]}


async def ask_async(state):
    return {"messages": [await MODEL.ainvoke(state["messages"])]}


def graph(asking, saver):
    builder = StateGraph(MessagesState)
    builder.add_node("ask", asking)
    builder.add_node("tools", ToolNode([look_up_order]))
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("ask", tools_condition)
    builder.add_edge("tools", "ask")
    return builder.compile(checkpointer=saver)


def fresh():
    config = {"configurable": {"thread_id": str(uuid.uuid4())}}
    return {"messages": [{"role": "user", "content": "where is order 1042?"}]}, config


def check(seen, state):
    """The turn did what it is measured for: every delta was seen, and the answer is in the checkpoint."""
    words = sum(len(chunk.content.split()) for chunk, _ in seen if isinstance(chunk, AIMessageChunk))
    kinds = [message.type for message in state.values["messages"]]
    assert words == 2 * DELTAS, words
    assert kinds == ["human", "ai", "tool", "ai"], kinds


def sync_turns(url, turns):
    samples = []
    with PostgresSaver.from_conn_string(url) as saver:
        runnable = graph(ask, saver)
        for _ in range(turns):
            sent, config = fresh()
            cpu, start = time.process_time(), time.perf_counter()
            seen = list(runnable.stream(sent, config, stream_mode="messages"))
            samples.append({"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu})
            check(seen, runnable.get_state(config))
    return samples


async def async_turns(url, turns):
    samples = []
    async with AsyncPostgresSaver.from_conn_string(url) as saver:
        runnable = graph(ask_async, saver)
        for _ in range(turns):
            sent, config = fresh()
            cpu, start = time.process_time(), time.perf_counter()
            seen = [each async for each in runnable.astream(sent, config, stream_mode="messages")]
            samples.append({"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu})
            check(seen, await runnable.aget_state(config))
    return samples


def serve(url):
    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
    versions = {name: version(name) for name in PACKAGES}
    print(json.dumps({"python": platform.python_version(), **versions}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["saver"] == "async":
            samples = asyncio.run(async_turns(url, asked["turns"]))
        else:
            samples = sync_turns(url, asked["turns"])
        print(json.dumps(samples), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
