"""What OpenAI's two interfaces, and servers compatible with them, receive from us, and what comes back."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from agent.domain.model_calls import Frame, ShownAttachment, ShownMessage, Usage
from agent.testing.contracts.provider import VendorAnswer
from tests.vendors.asking import LOOKUP, QUESTION, USAGE, answered, ask, lookup
from tests.vendors.conftest import Wire
from tests.vendors.openai_chat import chunk, usage_chunk
from tests.vendors.openai_responses import OpenAIResponses
from tests.vendors.server import Raw, event

pytestmark = pytest.mark.once

THANKS = ShownMessage(role="user", content="Thanks.")
ASKING = VendorAnswer(text=("A moment.",), calls=(lookup(1042, "a"), lookup(1043, "b")), usage=USAGE, stop="tool_calls")
DONE = VendorAnswer(text=("Sent.",), usage=USAGE)
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
MODEL = {"model": "m"}


def body(wire: Wire, number: int = -1) -> dict[str, Any]:
    return wire.vendor.seen[number].body


def test_chat_holds_system_tools_and_settings(chat: Wire) -> None:
    chat.vendor.answers.append(DONE)
    ask(chat.provider(settings={"temperature": 0.5}), settings={"max_tokens": 300, "seed": 7})
    seen = chat.vendor.seen[0]
    assert (seen.method, seen.path) == ("POST", "/v1/chat/completions")
    assert seen.headers["authorization"] == f"Bearer {chat.vendor.secret}"
    assert seen.body["messages"] == [
        {"role": "system", "content": "You help the desk."},
        {"role": "user", "content": QUESTION.content},
    ]
    assert (seen.body["temperature"], seen.body["seed"]) == (0.5, 7)
    assert 300 in (seen.body.get("max_tokens"), seen.body.get("max_completion_tokens"))
    assert seen.body["stream_options"] == {"include_usage": True}
    ((kind, tool),) = [(tool["type"], tool["function"]) for tool in seen.body["tools"]]
    assert (kind, tool["name"], tool["parameters"]["required"]) == ("function", LOOKUP.name, ["number"])


def test_chat_gives_every_result_under_its_call(chat: Wire) -> None:
    chat.vendor.answers += [ASKING, DONE]
    asked = ask(chat.provider())
    ask(chat.provider(), QUESTION, answered(asked, {"state": "sent"}, "no such order", failed=True))
    _, _, assistant, first, second = body(chat)["messages"]
    assert assistant["content"] == "A moment."
    assert [call["id"] for call in assistant["tool_calls"]] == ["a", "b"]
    assert [json.loads(call["function"]["arguments"]) for call in assistant["tool_calls"]] == [
        {"number": 1042},
        {"number": 1043},
    ]
    assert (first["tool_call_id"], second["tool_call_id"]) == ("a", "b")
    assert json.loads(second["content"]) == {"error": "no such order"}


def test_a_summary_follows_the_system_text(chat: Wire) -> None:
    chat.vendor.answers.append(DONE)
    ask(chat.provider(), ShownMessage(role="system", content="They met before."), QUESTION)
    assert [message["content"] for message in body(chat)["messages"]] == [
        "You help the desk.",
        "They met before.",
        QUESTION.content,
    ]


def test_arguments_that_are_not_json_go_back_beside_their_failure(chat: Wire) -> None:
    broken = lookup(1)
    broken = type(broken)(id=broken.id, name=broken.name, input={"__raw": '{"number": '})
    chat.vendor.answers += [VendorAnswer(calls=(broken,), usage=USAGE, stop="tool_calls"), DONE]
    asked = ask(chat.provider())
    ask(chat.provider(), QUESTION, answered(asked, "invalid arguments", failed=True))
    (call,) = body(chat)["messages"][2]["tool_calls"]
    assert '{"number": ' in json.loads(call["function"]["arguments"]).values()


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ("", {}),
        ("{}", {}),
        ("[1]", {"__raw": "[1]"}),
        ("7", {"__raw": "7"}),
        ('{"a": NaN}', {"__raw": '{"a": NaN}'}),
        ('{"a": -1e999}', {"__raw": '{"a": -1e999}'}),
        ('{"a": 1, "a": 2}', {"__raw": '{"a": 1, "a": 2}'}),
        ('{"a": ' + "9" * 5000 + "}", {"__raw": '{"a": ' + "9" * 5000 + "}"}),
        ("[" * 100_000, {"__raw": "[" * 100_000}),
        ('{"a":' * 101 + "1" + "}" * 101, {"__raw": '{"a":' * 101 + "1" + "}" * 101}),
        ('{"a": "\\u0000 \U0001f600"}', {"a": "\x00 \U0001f600"}),
    ],
)
def test_whatever_arguments_a_model_writes_are_a_call(chat: Wire, arguments: str, value: object) -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "lookup_order", "arguments": arguments}}
    chat.vendor.answers.append(
        Raw(events=(chunk({"tool_calls": [call]}, MODEL), chunk({}, MODEL, finish="tool_calls")))
    )
    (told,) = ask(chat.provider()).tool_calls
    assert told.input == value


def test_ids_that_every_turn_repeats_stay_apart(chat: Wire) -> None:
    chat.vendor.answers += [
        VendorAnswer(calls=(lookup(n, "call_0"),), usage=USAGE, stop="tool_calls") for n in range(5)
    ]
    shown = [QUESTION]
    for _ in range(5):
        reply = ask(chat.provider(), *shown)
        shown.append(answered(reply, "done"))
    ids = [call.id for message in shown for call in message.tool_calls]
    assert ids == ["call_0", "call_0-2", "call_0-3", "call_0-4", "call_0-5"]


def test_usage_of_the_last_chunk_counts(chat: Wire) -> None:
    chat.vendor.answers.append(VendorAnswer(text=("Yes.",), usage=Usage(input_tokens=9, output_tokens=2)))
    assert ask(chat.provider()).usage == Usage(input_tokens=9, output_tokens=2)


def test_usage_that_is_missing_is_not_nothing(chat: Wire, responses: Wire) -> None:
    for wire in (chat, responses):
        wire.vendor.answers.append(VendorAnswer(text=("Yes.",)))
        assert ask(wire.provider()).usage is None


def test_usage_of_zero_is_what_was_said(chat: Wire) -> None:
    zero = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    events = (chunk({"content": "Yes."}, MODEL), chunk({}, MODEL, finish="stop"), usage_chunk(zero, MODEL))
    chat.vendor.answers.append(Raw(events=events))
    reply = ask(chat.provider())
    assert (reply.text, reply.usage) == ("Yes.", Usage(input_tokens=0, output_tokens=0))


def test_output_includes_reasoning_once(chat: Wire) -> None:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 500,
        "total_tokens": 510,
        "completion_tokens_details": {"reasoning_tokens": 400},
    }
    events = (chunk({"content": "Yes."}, MODEL), chunk({}, MODEL, finish="stop"), usage_chunk(usage, MODEL))
    chat.vendor.answers.append(Raw(events=events))
    assert ask(chat.provider()).usage == Usage(input_tokens=10, output_tokens=500)


def test_reasoning_of_a_compatible_server_comes_back_during_its_tool_calls(chat: Wire) -> None:
    asking = VendorAnswer(reasoning=("Look it up.",), calls=(lookup(1),), usage=USAGE, stop="tool_calls")
    chat.vendor.answers += [asking, DONE]
    asked = ask(chat.provider())
    assert asked.reasoning == "Look it up."
    ask(chat.provider(), QUESTION, answered(asked, "sent"))
    assert body(chat)["messages"][2]["reasoning_content"] == "Look it up."


def test_thinking_in_tags_is_reasoning_and_is_not_sent_again(chat: Wire) -> None:
    pieces = ("<think>", "Hm.", "</think>", "Yes.")
    chat.vendor.answers += [VendorAnswer(text=pieces, usage=USAGE), DONE]
    reply = ask(chat.provider())
    assert (reply.reasoning, reply.text, reply.provider_state) == ("Hm.", "Yes.", None)
    ask(chat.provider(), QUESTION, answered(reply), THANKS)
    assert "Hm." not in json.dumps(body(chat))


def test_a_plain_answer_has_no_state_to_store(chat: Wire) -> None:
    chat.vendor.answers.append(ASKING)
    assert ask(chat.provider()).provider_state is None


def test_a_refusal_is_an_answer_that_was_filtered(chat: Wire) -> None:
    events = (chunk({"refusal": "I can"}, MODEL), chunk({"refusal": "not."}, MODEL), chunk({}, MODEL, finish="stop"))
    chat.vendor.answers.append(Raw(events=events))
    frames: list[Frame] = []
    reply = ask(chat.provider(), emit=frames.append)
    assert (reply.text, reply.stop) == ("I cannot.", "filtered")
    assert frames == [{"kind": "text", "text": "I cannot."}]


def test_a_reported_price_is_exact(chat: Wire) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12, "cost": 0.00014}

    def router(**fields: object) -> bytes:
        return event({"id": "gen-1", "object": "chat.completion.chunk", "created": 1, "model": "m", **fields})

    choice = {"index": 0, "delta": {"role": "assistant", "content": "Yes."}, "finish_reason": "stop"}
    said = [router(provider="P", choices=[{**choice, "native_finish_reason": "stop"}])]
    last = {**choice, "delta": {"role": "assistant", "content": ""}, "native_finish_reason": "stop"}
    said.append(router(provider="P", choices=[last], usage=usage))
    chat.vendor.answers.append(Raw(events=(*said, b"data: [DONE]\n\n")))
    reply = ask(chat.provider(model="openrouter:vendor/m"))
    assert reply.usage is not None
    assert reply.usage.reported_cost_usd == Decimal("0.00014")


def test_no_price_is_made_up(wire: Wire) -> None:
    wire.vendor.answers.append(DONE)
    reply = ask(wire.provider())
    assert reply.usage is not None
    assert reply.usage.reported_cost_usd is None


def test_a_structured_answer_is_asked_for_by_schema(chat: Wire, responses: Wire) -> None:
    for wire in (chat, responses):
        wire.vendor.answers.append(VendorAnswer(text=('{"city": "Riga"}',), usage=USAGE))
        assert json.loads(ask(wire.provider(), tools=(), response_schema=SCHEMA).text) == {"city": "Riga"}
    assert body(chat)["response_format"]["json_schema"]["schema"]["required"] == ["city"]
    assert body(responses)["text"]["format"]["schema"]["required"] == ["city"]


def test_responses_hold_system_tools_and_settings(responses: Wire) -> None:
    responses.vendor.answers.append(DONE)
    ask(responses.provider(), settings={"max_tokens": 300})
    seen = responses.vendor.seen[0]
    assert (seen.method, seen.path) == ("POST", "/v1/responses")
    assert (seen.body["instructions"], seen.body["max_output_tokens"]) == ("You help the desk.", 300)
    assert seen.body["input"] == [{"role": "user", "content": QUESTION.content}]
    assert "reasoning.encrypted_content" in seen.body["include"]
    assert "previous_response_id" not in seen.body
    assert [tool["name"] for tool in seen.body["tools"]] == [LOOKUP.name]


def test_responses_get_encrypted_reasoning_back_byte_for_byte(responses: Wire) -> None:
    asking = VendorAnswer(reasoning=("Look ", "twice."), calls=(lookup(1042, "a"), lookup(1043, "b")), usage=USAGE)
    responses.vendor.answers += [asking, DONE]
    asked = ask(responses.provider())
    assert (asked.stop, asked.reasoning) == ("tool_calls", "Look twice.")
    ask(responses.provider(), QUESTION, answered(asked, "sent", "lost"))
    dialect = responses.vendor.dialect
    assert isinstance(dialect, OpenAIResponses)
    ((item_id, encrypted),) = dialect.encrypted.items()
    _, reasoning, first, second, *results = body(responses)["input"]
    assert (reasoning["type"], reasoning["id"], reasoning["encrypted_content"]) == ("reasoning", item_id, encrypted)
    assert [call["call_id"] for call in (first, second)] == ["a", "b"]
    assert all(call["id"].startswith("fc_") for call in (first, second))
    assert [(result["call_id"], result["output"]) for result in results] == [("a", "sent"), ("b", "lost")]


def test_a_changed_text_loses_the_item_it_was(responses: Wire) -> None:
    responses.vendor.answers += [VendorAnswer(reasoning=("Hm.",), text=("Yes.",), usage=USAGE), DONE]
    reply = ask(responses.provider())
    ask(responses.provider(), QUESTION, answered(reply, content="[removed]"), THANKS)
    assert body(responses)["input"][1:] == [
        {"role": "assistant", "content": "[removed]"},
        {"role": "user", "content": THANKS.content},
    ]


def test_bytes_of_files_are_given_inline_and_texts_in_words(chat: Wire) -> None:
    chat.vendor.answers.append(DONE)
    kinds = {"image/png": b"\x89PNG", "application/pdf": b"%PDF-1.7", "text/csv": b"a,b\n"}
    files = tuple(ShownAttachment(url="/x", content_type=kind, name="f", data=data) for kind, data in kinds.items())
    ask(chat.provider(), ShownMessage(role="user", content="Look", attachments=files))
    _, image, document, text = body(chat)["messages"][-1]["content"]
    assert image["image_url"]["url"] == "data:image/png;base64,iVBORw=="
    assert document["file"]["file_data"] == "data:application/pdf;base64,JVBERi0xLjc="
    assert text["text"] == 'The file "f" (text/csv):\na,b\n'
