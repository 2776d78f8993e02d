"""The scripted model: what it was told, word by word, the same every time."""

from __future__ import annotations

import asyncio

import pytest

from agent.domain.model_calls import Frame, ModelRequest, Reply, ReplyCall, Usage
from agent.errors import Cancelled, ModelError
from agent.providers.scripted import ScriptedProvider, ScriptedReply, call
from tests.vendors.asking import QUESTION, answered, ask, request

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    "text", ["Hello there.", "  two  spaces\n\nand a line \t", "one", " ", "\n", "😀 é\u00a0x\u200b"]
)
def test_the_words_put_together_are_the_text(text: str) -> None:
    frames: list[Frame] = []
    reply = ask(ScriptedProvider([text]), emit=frames.append)
    assert "".join(frame["text"] for frame in frames) == reply.text == text
    assert all(frame["kind"] == "text" for frame in frames)


def test_a_list_answers_in_order_and_ends_with_a_clear_error() -> None:
    provider = ScriptedProvider(["One.", "Two."])
    assert [ask(provider).text, ask(provider).text] == ["One.", "Two."]
    with pytest.raises(ModelError, match="holds 2 answers and was asked for answer 3") as caught:
        ask(provider, purpose="follow_ups")
    assert not caught.value.transient


def test_a_function_answers_from_the_request() -> None:
    def echo(asked: ModelRequest) -> str:
        return asked.messages[-1].content

    async def slow_echo(asked: ModelRequest) -> str:
        await asyncio.sleep(0)
        return asked.messages[-1].content

    assert ask(ScriptedProvider(echo)).text == ask(ScriptedProvider(slow_echo)).text == QUESTION.content


def test_calls_are_announced_streamed_and_given_whole() -> None:
    frames: list[Frame] = []
    reply = ask(ScriptedProvider([ScriptedReply("So:", calls=[call("lookup_order", number=1042)])]), emit=frames.append)
    assert reply.stop == "tool_calls"
    assert frames == [
        {"kind": "text", "text": "So:"},
        {"kind": "tool-input-start", "id": "call_1", "name": "lookup_order"},
        {"kind": "tool-input-delta", "id": "call_1", "delta": '{"number": 1042}'},
        {"kind": "tool-input-available", "id": "call_1", "name": "lookup_order", "input": {"number": 1042}},
    ]


def test_a_repeated_id_gets_a_suffix_within_a_step_and_across_turns() -> None:
    two = ScriptedReply(calls=[call("a"), call("b")])
    provider = ScriptedProvider([two, two])
    first = ask(provider)
    second = ask(provider, QUESTION, answered(first, 1, 2))
    assert [made.id for made in (*first.tool_calls, *second.tool_calls)] == [
        "call_1",
        "call_1-2",
        "call_1-3",
        "call_1-4",
    ]


def test_a_reply_is_given_as_it_is() -> None:
    planned = Reply(text="Hi.", tool_calls=(ReplyCall(id="x", name="a", input={}),), usage=Usage(input_tokens=1))
    reply = ask(ScriptedProvider([planned]), model="other")
    assert (reply.text, reply.usage, reply.model_id) == ("Hi.", planned.usage, "other")
    assert reply.tool_calls == planned.tool_calls


def test_usage_is_counted_the_same_every_time() -> None:
    replies = [ask(ScriptedProvider(["Three small words"])) for _ in range(2)]
    assert replies[0].usage == replies[1].usage == Usage(input_tokens=10, output_tokens=3)
    assert ask(ScriptedProvider([ScriptedReply("x", usage=None)])).usage is None


def test_an_error_is_raised_instead_of_an_answer_or_after_half_of_one() -> None:
    frames: list[Frame] = []
    provider = ScriptedProvider([ModelError(transient=True, status=429), ScriptedReply("Half", error=KeyError("cut"))])
    with pytest.raises(ModelError) as caught:
        ask(provider)
    assert (caught.value.transient, caught.value.status) == (True, 429)
    with pytest.raises(KeyError):
        ask(provider, emit=frames.append)
    assert frames == [{"kind": "text", "text": "Half"}]


def test_a_set_flag_stops_between_two_words_with_the_usage_so_far() -> None:
    flag = asyncio.Event()
    frames: list[Frame] = []

    def emit(frame: Frame) -> None:
        frames.append(frame)
        flag.set()

    with pytest.raises(Cancelled) as caught:
        ask(ScriptedProvider(["one two three"]), emit=emit, cancelled=flag)
    assert [frame["text"] for frame in frames] == ["one"]
    assert isinstance(caught.value.usage, Usage)
    assert caught.value.usage.output_tokens == 1


def test_a_cancelled_task_stops_in_a_pause() -> None:
    async def stopped() -> bool:
        heard = asyncio.Event()
        provider = ScriptedProvider([ScriptedReply("word " * 1000, delay_ms=1)])
        task = asyncio.ensure_future(provider.stream(request(), lambda frame: heard.set()))
        await heard.wait()
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled()

    assert asyncio.run(stopped())


def test_the_last_requests_are_kept() -> None:
    provider = ScriptedProvider(lambda asked: "Yes.")
    for _ in range(60):
        ask(provider)
    assert len(provider.requests) == 50
    assert provider.requests[-1].messages == (QUESTION,)
