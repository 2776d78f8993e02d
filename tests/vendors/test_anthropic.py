"""What Anthropic's Messages receive from us, and what comes back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.domain.model_calls import ShownAttachment, ShownMessage, Usage
from agent.testing.contracts.provider import VendorAnswer
from tests.vendors.anthropic import Anthropic, finish, start, usage_of
from tests.vendors.asking import LOOKUP, QUESTION, USAGE, answered, ask, lookup
from tests.vendors.conftest import Wire
from tests.vendors.server import Raw, event

pytestmark = pytest.mark.once

THANKS = ShownMessage(role="user", content="Thanks. And who are you?")
ASKING = VendorAnswer(reasoning=("Two orders, ", "two looks.\n"), text=("A moment.",), calls=(
    lookup(1042, "toolu_1"), lookup(1043, "toolu_2")), usage=USAGE, stop="tool_calls")  # fmt: skip
DONE = VendorAnswer(text=("Sent.",), usage=USAGE)


def body(wire: Wire, number: int = -1) -> dict[str, Any]:
    return wire.vendor.seen[number].body


def test_a_request_holds_system_tools_and_settings(messages: Wire) -> None:
    messages.vendor.answers.append(DONE)
    ask(messages.provider(settings={"temperature": 0.5, "max_tokens": 7}), settings={"max_tokens": 300})
    seen = messages.vendor.seen[0]
    assert (seen.method, seen.path.partition("?")[0]) == ("POST", "/v1/messages")
    assert messages.vendor.secret in (seen.headers.get("x-api-key") or seen.headers["authorization"])
    assert [block["text"] for block in seen.body["system"]] == ["You help the desk."]
    assert seen.body["messages"] == [{"role": "user", "content": [{"type": "text", "text": QUESTION.content}]}]
    assert (seen.body["model"], seen.body["stream"]) == ("claude-haiku-4-5", True)
    assert (seen.body["temperature"], seen.body["max_tokens"]) == (0.5, 300)
    (tool,) = seen.body["tools"]
    assert (tool["name"], tool["description"], tool["input_schema"]) == (LOOKUP.name, LOOKUP.description, LOOKUP.schema)


def test_all_results_of_a_step_come_in_one_message_after_the_signed_thinking(messages: Wire) -> None:
    messages.vendor.answers += [ASKING, DONE]
    asked = ask(messages.provider())
    assert asked.reasoning == "Two orders, two looks.\n"
    ask(messages.provider(), QUESTION, answered(asked, {"state": "sent"}, "not found"))  # another process goes on
    _, assistant, results = body(messages)["messages"]
    dialect = messages.vendor.dialect
    assert isinstance(dialect, Anthropic)
    ((signature, thinking),) = dialect.signed.items()
    assert assistant["content"] == [
        {"type": "thinking", "thinking": thinking, "signature": signature},
        {"type": "text", "text": "A moment."},
        {"type": "tool_use", "id": "toolu_1", "name": "lookup_order", "input": {"number": 1042}},
        {"type": "tool_use", "id": "toolu_2", "name": "lookup_order", "input": {"number": 1043}},
    ]
    assert [(block["tool_use_id"], block["content"][0]["text"], block["is_error"]) for block in results["content"]] == [
        ("toolu_1", '{"state":"sent"}', False),
        ("toolu_2", "not found", False),
    ]


def test_a_failed_result_is_marked_and_the_next_question_follows_it(messages: Wire) -> None:
    messages.vendor.answers += [ASKING, DONE, DONE]
    asked = ask(messages.provider())
    ask(messages.provider(), QUESTION, answered(asked, "no such order", "no such order", failed=True), THANKS)
    *_, last = body(messages)["messages"]
    assert [block["type"] for block in last["content"]] == ["tool_result", "tool_result", "text"]
    assert [block["is_error"] for block in last["content"][:2]] == [True, True]


def test_redacted_thinking_comes_back_as_it_was(messages: Wire) -> None:
    block = {"type": "redacted_thinking", "data": 'EmwKAhgB/+=="\u2028'}
    call = {"type": "tool_use", "id": "toolu_1", "name": "lookup_order", "input": {}}
    usage = usage_of(USAGE)
    messages.vendor.answers += [
        Raw(
            events=(
                start({"model": "m"}, usage),
                event({"type": "content_block_start", "index": 0, "content_block": block}, "content_block_start"),
                event({"type": "content_block_stop", "index": 0}, "content_block_stop"),
                event({"type": "content_block_start", "index": 1, "content_block": call}, "content_block_start"),
                event({"type": "content_block_stop", "index": 1}, "content_block_stop"),
                *finish("tool_use", usage),
            )
        ),
        DONE,
    ]
    asked = ask(messages.provider())
    assert [call.input for call in asked.tool_calls] == [{}]
    ask(messages.provider(), QUESTION, answered(asked, None))
    assert body(messages)["messages"][1]["content"][0] == block


def test_a_text_changed_since_is_shown_as_changed_beside_its_thinking(messages: Wire) -> None:
    messages.vendor.answers += [ASKING, DONE]
    asked = ask(messages.provider())
    assert "A moment." not in str(asked.provider_state)
    ask(messages.provider(), QUESTION, answered(asked, 1, 2, content="[removed]"))
    blocks = body(messages)["messages"][1]["content"]
    assert [block["type"] for block in blocks] == ["thinking", "text", "tool_use", "tool_use"]
    assert blocks[1]["text"] == "[removed]"


@pytest.mark.parametrize("state", ["", "{", "[]", '{"v": 1}', '{"v": 9, "provider": "anthropic"}', "null", "\ud800"])
def test_a_state_nobody_can_read_is_left_out(messages: Wire, state: str) -> None:
    messages.vendor.answers += [VendorAnswer(text=("Yes.",), usage=USAGE), DONE]
    reply = ask(messages.provider())
    ask(messages.provider(), QUESTION, answered(reply, provider_state=state), THANKS)
    assert body(messages)["messages"][1]["content"] == [{"type": "text", "text": "Yes."}]


def test_thinking_is_dropped_when_the_thread_moves_to_another_vendor(messages: Wire, chat: Wire) -> None:
    messages.vendor.answers.append(ASKING)
    chat.vendor.answers.append(DONE)
    asked = ask(messages.provider())
    ask(chat.provider(), QUESTION, answered(asked, 1, 2))
    assert "two looks" not in json.dumps(body(chat))
    assert [message["role"] for message in body(chat)["messages"]] == ["system", "user", "assistant", "tool", "tool"]


def test_usage_counts_both_kinds_of_cache_writes_within_the_input(messages: Wire) -> None:
    said = Usage(
        input_tokens=1000,
        output_tokens=50,
        cache_read_tokens=700,
        cache_write_tokens=200,
        cache_write_1h_tokens=150,
    )
    messages.vendor.answers.append(VendorAnswer(text=("Yes.",), usage=said))
    assert ask(messages.provider()).usage == said


def test_caching_marks_the_stable_head_and_leaves_the_summary_out_of_it(messages: Wire) -> None:
    messages.vendor.answers.append(DONE)
    summary = ShownMessage(role="system", content="<conversation_summary>They met.</conversation_summary>")
    ask(messages.provider(settings={"cache": "1h"}), summary, QUESTION)
    seen = body(messages)
    head, tail = seen["system"]
    assert (head["text"], head["cache_control"]) == ("You help the desk.", {"type": "ephemeral", "ttl": "1h"})
    assert (tail["text"], "cache_control" in tail) == (summary.content, False)
    assert seen["tools"][-1]["cache_control"]["ttl"] == "1h"


@pytest.mark.parametrize(("output", "text"), [("", '""'), (None, "null"), ([], "[]"), ({}, "{}"), ("  ", '"  "')])
def test_an_empty_result_is_sent_in_a_lawful_form(messages: Wire, output: object, text: str) -> None:
    messages.vendor.answers += [VendorAnswer(calls=(lookup(1),), usage=USAGE, stop="tool_calls"), DONE]
    asked = ask(messages.provider())
    ask(messages.provider(), QUESTION, answered(asked, output))
    assert body(messages)["messages"][-1]["content"][0]["content"] == [{"type": "text", "text": text}]


def test_an_attachment_is_given_by_its_url(messages: Wire) -> None:
    messages.vendor.answers.append(DONE)
    file = ShownAttachment(url="https://site.example/m/1?sig=x", content_type="image/png", name="a.png")
    ask(messages.provider(), ShownMessage(role="user", content="Look", attachments=(file,)))
    text, image = body(messages)["messages"][0]["content"]
    assert text["text"] == "Look"
    assert image == {"type": "image", "source": {"type": "url", "url": file.url}}


def test_a_system_message_within_the_thread_stays_where_it_is(messages: Wire) -> None:
    messages.vendor.answers.append(DONE)
    note = ShownMessage(role="system", content="The operator joined.")
    reply = ShownMessage(role="assistant", content="Hello.")
    ask(messages.provider(), QUESTION, reply, note, THANKS)
    *_, last = body(messages)["messages"]
    assert "The operator joined." in json.dumps(last)
    assert json.dumps(last).index("The operator joined.") < json.dumps(last).index(THANKS.content)


def test_a_structured_answer_is_asked_for_by_schema(messages: Wire) -> None:
    messages.vendor.answers.append(VendorAnswer(text=('{"city": "Riga"}',), usage=USAGE))
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    reply = ask(messages.provider(), tools=(), response_schema=schema)
    assert json.loads(reply.text) == {"city": "Riga"}
    wanted = body(messages)["output_config"]["format"]
    assert (wanted["type"], wanted["schema"]["required"]) == ("json_schema", ["city"])


def test_bytes_of_files_are_given_inline_and_texts_in_words(messages: Wire) -> None:
    messages.vendor.answers.append(DONE)
    kinds = {"image/png": b"\x89PNG", "application/pdf": b"%PDF-1.7", "text/csv": b"a,b\n"}
    files = tuple(ShownAttachment(url="/x", content_type=kind, name="f", data=data) for kind, data in kinds.items())
    ask(messages.provider(), ShownMessage(role="user", content="Look", attachments=files))
    _, image, document, text = body(messages)["messages"][0]["content"]
    assert image["source"] == {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}
    assert (document["type"], document["source"]["data"]) == ("document", "JVBERi0xLjc=")
    assert text["text"] == 'The file "f" (text/csv):\na,b\n'
