"""A host's mistakes and a vendor's bad days: a sentence for the user, advice in the log, no secret anywhere."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
from typing import Any

import pytest

from agent.domain.model_calls import Frame, Usage
from agent.errors import Cancelled, ModelError
from agent.providers.pydantic_ai import PydanticAIProvider
from agent.testing.contracts.provider import VendorAnswer
from tests.vendors.anthropic import start, usage_of
from tests.vendors.asking import USAGE, ask, request
from tests.vendors.conftest import Wire
from tests.vendors.openai_chat import chunk
from tests.vendors.server import PATIENCE, Raw, event

pytestmark = pytest.mark.once

DONE = VendorAnswer(text=("Sent.",), usage=USAGE)
MODEL = {"model": "m"}


def failure(provider: PydanticAIProvider, **fields: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        ask(provider, **fields)
    assert caught.value.__context__ is None  # a reporter that follows contexts finds nothing raw
    return caught.value


@pytest.mark.parametrize(
    ("status", "sentence", "advice"),
    [
        (401, "The model refused this site's credentials.", "check the API key"),
        (403, "The model refused this site's credentials.", "check that the API key may use this model"),
        (404, "The model is not available.", "check the model's name and the base_url"),
        (400, "The model did not accept the request.", "status_code: 400"),
        (429, "The model is busy. Please try again in a moment.", "may be tried again"),
        (500, "The model could not be reached.", "may be tried again"),
        (529, "The model could not be reached.", "may be tried again"),
    ],
)
def test_a_refusal_tells_the_user_a_sentence_and_the_log_what_to_do(
    wire: Wire, caplog: pytest.LogCaptureFixture, status: int, sentence: str, advice: str
) -> None:
    wire.vendor.answers.append(VendorAnswer(status=status))
    error = failure(wire.provider())
    assert (error.message, error.status, error.too_long) == (sentence, status, False)
    assert advice in caplog.text
    assert wire.model in caplog.text
    assert "You are not welcome" in caplog.text
    assert wire.vendor.secret not in caplog.text
    assert wire.vendor.secret not in repr(error.__cause__)
    assert "You are not welcome" not in error.message


def test_the_sdk_never_tries_again_by_itself(wire: Wire) -> None:
    wire.vendor.answers += [VendorAnswer(status=500), DONE]
    assert failure(wire.provider()).transient
    assert len(wire.vendor.seen) == 1


def test_an_exhausted_account_is_not_a_busy_model(chat: Wire) -> None:
    told = b'{"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}'
    chat.vendor.answers.append(Raw(status=429, content_type="application/json", events=(told,)))
    error = failure(chat.provider())
    assert (error.transient, error.message) == (False, "The model account of this site is used up.")


def test_a_conversation_that_is_too_long_says_so(messages: Wire) -> None:
    told = b'{"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}}'
    messages.vendor.answers.append(Raw(status=400, content_type="application/json", events=(told,)))
    error = failure(messages.provider())
    assert (error.transient, error.message) == (False, "The conversation is too long for the model.")
    assert error.too_long


def test_a_server_that_is_not_there_may_come_back() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://user:hunter2secret@127.0.0.1:{unused.getsockname()[1]}/v1"
        error = failure(PydanticAIProvider("openai-chat:m", base_url=url))
    assert error.transient
    assert "hunter2secret" not in f"{error} {error.__cause__}"


def test_a_silent_server_runs_into_the_timeout(wire: Wire) -> None:
    wire.vendor.answers.append(VendorAnswer(text=("Wait",), ending="silence"))
    error = failure(wire.provider(timeout=0.2))
    assert (error.transient, error.message) == (True, "The connection to the model broke off. Please try again.")
    assert wire.vendor.dropped.wait(PATIENCE)


def test_an_answer_that_ends_without_its_end_was_cut(wire: Wire) -> None:
    dialect = wire.vendor.dialect
    half = tuple(dialect.speak(VendorAnswer(text=("Half an ",), usage=USAGE, ending="cut"), MODEL))
    wire.vendor.answers.append(Raw(events=half))  # a proxy that closes politely
    assert failure(wire.provider()).transient


def test_a_server_that_never_says_why_it_stopped_can_be_allowed(chat: Wire) -> None:
    chat.vendor.answers.append(Raw(events=(chunk({"content": "Yes."}, MODEL), b"data: [DONE]\n\n")))
    assert ask(chat.provider(finish_required=False)).text == "Yes."


def test_nothing_at_all_was_cut(wire: Wire) -> None:
    wire.vendor.answers.append(Raw())
    assert failure(wire.provider()).transient


def test_a_page_instead_of_a_stream_is_an_error(wire: Wire) -> None:
    wire.vendor.answers.append(Raw(content_type="text/html", events=(b"<html>Log in to the hotel WLAN</html>",)))
    failure(wire.provider())


def test_an_overload_within_the_stream_is_transient_and_keeps_its_usage(messages: Wire) -> None:
    opening = start(MODEL, usage_of(Usage(input_tokens=30, output_tokens=0)))
    overload = event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "error")
    messages.vendor.answers.append(Raw(events=(opening, overload)))
    error = failure(messages.provider())
    assert error.transient
    assert isinstance(error.usage, Usage)
    assert error.usage.input_tokens == 30


def test_an_error_within_the_stream_is_an_error(chat: Wire) -> None:
    told = event({"error": {"message": "upstream key sk-live-abcdef123456 failed", "code": 502}})
    chat.vendor.answers.append(Raw(events=(chunk({"content": "So"}, MODEL), told)))
    error = failure(chat.provider())
    assert error.transient
    assert "sk-live" not in str(error.__cause__)


@pytest.mark.parametrize(
    ("model", "variable"), [("openai:gpt-5.6-luna", "OPENAI_API_KEY"), ("anthropic:m", "ANTHROPIC_API_KEY")]
)
def test_a_missing_key_is_named_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, model: str, variable: str
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    error = failure(PydanticAIProvider(model))
    assert (error.transient, error.message) == (False, "The model is not set up on this site.")
    assert variable in caplog.text


def test_a_key_of_the_environment_is_hidden_too(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    variable = "ANTHROPIC_API_KEY" if wire.name == "messages" else "OPENAI_API_KEY"
    monkeypatch.setenv(variable, "unusual+key/from=environment")
    wire.vendor.secret = "unusual+key/from=environment"
    wire.vendor.answers.append(VendorAnswer(status=401))
    failure(wire.provider(api_key=None))
    assert "unusual" not in caplog.text


def test_a_key_is_never_sent_to_another_vendor(chat: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    failure(chat.provider(), model="anthropic:claude-haiku-4-5")
    assert chat.vendor.seen == []


def test_unknown_names_are_the_hosts_to_mend(chat: Wire, caplog: pytest.LogCaptureFixture) -> None:
    assert not failure(PydanticAIProvider("nobody:model")).transient
    assert not failure(PydanticAIProvider()).transient
    assert "nobody:model" in caplog.text
    assert "No model is named" in caplog.text


def test_a_bare_name_is_a_model_of_the_same_vendor(chat: Wire) -> None:
    chat.vendor.answers += [DONE, DONE]
    ask(chat.provider(), model="llama3:8b")
    ask(chat.provider(), model="openai-chat:other")
    assert [seen.body["model"] for seen in chat.vendor.seen] == ["llama3:8b", "other"]


def test_an_address_or_key_needs_a_model() -> None:
    for options in ({"base_url": "http://x/v1"}, {"api_key": "k"}):
        with pytest.raises(ValueError, match="Name the model"):
            PydanticAIProvider(**options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="openai:gpt"):
        PydanticAIProvider("gpt")


@pytest.mark.parametrize(("module", "extra"), [("pydantic_ai", "anthropic"), ("anthropic", "anthropic")])
def test_a_missing_extra_is_named_at_once(module: str, extra: str) -> None:
    program = f"""
import sys
sys.modules[{module!r}] = None
from agent.providers.pydantic_ai import PydanticAIProvider
PydanticAIProvider("anthropic:m")
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert f"ImportError: {module} is not installed" in ended.stderr
    assert f"pip install 'django-steward[{extra}]'" in ended.stderr


def test_the_library_is_not_imported_before_the_first_call() -> None:
    program = """
import sys
from agent.providers.pydantic_ai import PydanticAIProvider, provider_from_environment
PydanticAIProvider("anthropic:m")
provider_from_environment({"OPENAI_API_KEY": "k"})
sys.exit(sum(name.split(".")[0] in {"pydantic_ai", "openai", "anthropic"} for name in sys.modules))
"""
    subprocess.run([sys.executable, "-c", program], timeout=120, check=True)


def test_a_set_flag_closes_the_connection_and_keeps_the_usage(messages: Wire) -> None:
    messages.vendor.answers.append(VendorAnswer(text=("Wait",), usage=USAGE, ending="silence"))

    async def stopped() -> Cancelled:
        flag = asyncio.Event()
        with pytest.raises(Cancelled) as caught:
            await messages.provider().stream(request(cancelled=flag), lambda frame: flag.set())
        return caught.value

    usage = asyncio.run(stopped()).usage
    assert isinstance(usage, Usage)
    assert usage.input_tokens == USAGE.input_tokens
    assert messages.vendor.dropped.wait(PATIENCE)


def test_a_cancelled_task_closes_the_connection_and_keeps_the_usage(messages: Wire) -> None:
    messages.vendor.answers.append(VendorAnswer(text=("Wait",), usage=USAGE, ending="silence"))

    async def stopped() -> object:
        heard = asyncio.Event()
        told: list[object] = []

        async def call() -> None:
            try:
                await messages.provider().stream(request(), lambda frame: heard.set())
            except asyncio.CancelledError as error:
                told.append(getattr(error, "usage", None))
                raise

        task = asyncio.create_task(call())
        await asyncio.wait_for(heard.wait(), PATIENCE)
        task.cancel()
        await asyncio.wait({task}, timeout=PATIENCE)
        return told[0]

    usage = asyncio.run(stopped())
    assert isinstance(usage, Usage)
    assert usage.input_tokens == USAGE.input_tokens
    assert messages.vendor.dropped.wait(PATIENCE)


def test_a_flag_set_before_costs_nothing(wire: Wire) -> None:
    flag = asyncio.Event()
    flag.set()
    with pytest.raises(Cancelled):
        ask(wire.provider(), cancelled=flag)
    assert wire.vendor.seen == []


@pytest.mark.parametrize("ours", [ConnectionError("the stream's sink is gone"), TimeoutError("slow sink"), KeyError()])
def test_what_the_emitter_raises_is_not_the_vendors_fault(wire: Wire, ours: Exception) -> None:
    wire.vendor.answers.append(VendorAnswer(text=("Wait",), ending="silence"))

    def emit(frame: Frame) -> None:
        raise ours

    with pytest.raises(type(ours)) as caught:
        ask(wire.provider(), emit=emit)
    assert caught.value is ours
    assert wire.vendor.dropped.wait(PATIENCE)


def test_errors_are_logged_under_our_name(chat: Wire, caplog: pytest.LogCaptureFixture) -> None:
    chat.vendor.answers.append(VendorAnswer(status=401))
    with caplog.at_level(logging.ERROR, logger="agent"):
        failure(chat.provider())
    assert [record.levelname for record in caplog.records if record.name.startswith("agent.")] == ["ERROR"]
