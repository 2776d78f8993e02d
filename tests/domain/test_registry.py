"""What is declared is found by name, and every mistake is collected with the place where it was made."""

from __future__ import annotations

import datetime
import subprocess
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings
from pydantic import BaseModel, Field, RootModel, model_validator

from agent import Confirm, History, Tool, ToolContext, agent, persona, tool, window_history
from agent.conf import agent_settings, setting_problems
from agent.domain.windows import UNBOUNDED
from agent.providers.scripted import ScriptedProvider
from agent.registry import (
    UNNAMED,
    FollowUps,
    Handoff,
    InvalidInput,
    Registry,
    ToolDefinition,
    handoffs_of,
    isolated_registry,
    provider_for,
    resolve_history,
)
from agent.registry.names import human_name, is_name, snake_name


@pytest.fixture(autouse=True)
def registry() -> Iterator[Registry]:
    with isolated_registry() as book:
        yield book


def named(registry: Registry, name: str) -> ToolDefinition:
    found = registry.tool(name)
    assert found is not None, registry.problems()
    return found


# ---- names ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "look_up", "a-b-9", "a" * 64])
def test_a_name_is_lawful(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize("name", ["", "A", "9a", "_a", "a b", "a.b", "a" * 65, "é", "a\n", None, 3])
def test_a_name_is_not_lawful(name: object) -> None:
    assert not is_name(name)


def test_names_follow_from_identifiers() -> None:
    assert [snake_name(each) for each in ("LookUpOrder", "HTTPGet", "Refund2Pay", "already_so")] == [
        "look_up_order",
        "http_get",
        "refund2_pay",
        "already_so",
    ]
    assert human_name("look_up-order") == "Look up order"


# ---- tools ---------------------------------------------------------------------------------------------------------


class Amount(BaseModel):
    cents: int = Field(gt=0)


def test_a_function_is_a_tool_and_stays_a_function(registry: Registry) -> None:
    @tool
    def balance(ctx: ToolContext, account: str, newest: int = 3, since: datetime.date | None = None) -> dict[str, str]:
        """Current balance of an account."""
        return {"account": account}

    found = named(registry, "balance")
    assert (found.kind, found.description) == ("read", "Current balance of an account.")
    assert found.schema["required"] == ["account"]
    assert set(found.schema["properties"]) == {"account", "newest", "since"}
    assert found.schema["properties"]["newest"]["default"] == 3
    assert found.schema["additionalProperties"] is False
    assert balance(ctx=None, account="a") == {"account": "a"}  # type: ignore[arg-type]


def test_a_class_is_a_tool_by_attributes_or_arguments(registry: Registry) -> None:
    @tool(approver="billing.approve_refund", timeout=30, replacement_key=lambda given: given.invoice)
    class Refund(Tool):
        """Pay an invoice back."""

        kind = "action"
        confirm = Confirm("Refund {invoice}", "Refund", "{cents} cents")

        class Input(BaseModel):
            invoice: str
            cents: int = Field(gt=0)

        async def execute(self, given: Input, ctx: ToolContext) -> str:
            return given.invoice

    found = named(registry, "refund")
    assert (found.kind, found.approver, found.timeout) == ("action", "billing.approve_refund", 30)
    assert found.confirm == Confirm("Refund {invoice}", "Refund", "{cents} cents")
    assert isinstance(found.parse({"invoice": "i", "cents": 1}), Refund.Input)
    assert found.runs_async


def test_a_class_without_input_takes_its_signature(registry: Registry) -> None:
    @tool
    class Greet(Tool):
        """Greet."""

        def execute(self, ctx: ToolContext, name: str) -> str:
            return f"Hello {name}"

    assert named(registry, "greet").schema["required"] == ["name"]
    assert registry.problems() == []


def test_names_that_pydantic_uses_itself_are_lawful_arguments(registry: Registry) -> None:
    @tool
    def odd(copy: str, json: int, schema: str, model_name: str) -> None:
        """Odd names."""

    parsed = named(registry, "odd").parse({"copy": "c", "json": 1, "schema": "s", "model_name": "m"})
    assert (vars(parsed)["copy"], vars(parsed)["json"]) == ("c", 1)


def test_the_context_is_known_by_its_type_whatever_its_name(registry: Registry) -> None:
    @tool
    def look(where: ToolContext, ctx: str) -> None:
        """Look."""

    assert named(registry, "look").schema["required"] == ["ctx"]


def test_constraints_and_nested_models_reach_the_schema(registry: Registry) -> None:
    @tool
    def pay(amount: Amount, note: Annotated[str, Field(max_length=5)], times: int = Field(default=1, ge=1)) -> None:
        """Pay."""

    found = named(registry, "pay")
    assert found.schema["properties"]["note"]["maxLength"] == 5
    assert found.schema["properties"]["times"] == {"default": 1, "minimum": 1, "title": "Times", "type": "integer"}
    with pytest.raises(InvalidInput, match=r"amount\.cents: input should be greater than 0"):
        found.parse({"amount": {"cents": 0}, "note": "x"})


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({}, "The arguments are not valid: account is required; count is required."),
        ({"account": "a", "count": 1, "x": 1}, "The arguments are not valid: x is not an argument of this tool."),
        ({"account": "a", "count": "?"}, "count: input should be a valid integer"),
        ({"__raw": '{"account": '}, "The arguments are not valid JSON:"),
        ({"account": "a", "count": float("nan")}, "count: input should be a finite number"),
        (None, "The arguments must be one JSON object."),
        ([], "The arguments must be one JSON object."),
        ("text", "The arguments must be one JSON object."),
    ],
)
def test_bad_arguments_are_told_in_our_own_sentences(registry: Registry, raw: Any, text: str) -> None:
    @tool
    def take(account: str, count: int) -> None:
        """Take."""

    with pytest.raises(InvalidInput) as refused:
        named(registry, "take").parse(raw)
    assert text in refused.value.message
    assert "pydantic" not in refused.value.message


def test_many_mistakes_are_not_an_endless_sentence(registry: Registry) -> None:
    @tool
    def take(account: str = "") -> None:
        """Take."""

    with pytest.raises(InvalidInput) as refused:
        named(registry, "take").parse({f"key{number}": number for number in range(500)})
    assert "and 492 more" in refused.value.message
    assert len(refused.value.message) < 600


def test_what_a_models_own_validator_says_is_told(registry: Registry) -> None:
    class Span(BaseModel):
        first: int
        last: int

        @model_validator(mode="after")
        def ordered(self) -> Span:
            if self.first > self.last:
                raise ValueError("first comes before last")
            return self

    @tool
    class Take(Tool):
        """Take."""

        Input = Span

        def execute(self, given: Span, ctx: ToolContext) -> None: ...

    found = named(registry, "take")
    with pytest.raises(InvalidInput, match="the input: value error, first comes before last"):
        found.parse({"first": 2, "last": 1})
    with pytest.raises(InvalidInput, match="x is not an argument"):
        found.parse({"first": 1, "last": 2, "x": 0})


def _bad_tools() -> dict[str, Any]:  # noqa: C901 - a table
    def no_hint(account) -> None:  # type: ignore[no-untyped-def]
        """Text."""

    def many(*accounts: str) -> None:
        """Text."""

    def blank(account: str) -> None:
        """ """

    def undescribed(account: str) -> None: ...

    def private(_account: str) -> None:
        """Text."""

    def unknown_hint(account: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821
        """Text."""

    def unschemed(account: object, stream: ScriptedProvider) -> None:
        """Text."""

    class NoBody(Tool):
        """Text."""

    class Needy(Tool):
        """Text."""

        def __init__(self, what: str) -> None: ...

        def execute(self) -> None: ...

    class Lone(Tool):
        """Text."""

        Input = Amount

        def execute(self, given: Amount) -> None: ...

    class Rooted(Tool):
        """Text."""

        Input = RootModel[int]

        def execute(self, given: object, ctx: ToolContext) -> None: ...

    class Uncommitted(Tool):
        """Text."""

        confirmed = True

        def execute(self) -> None: ...

    return {
        "parameter 'account' has no type hint": no_hint,
        "a tool is called by keyword": many,
        "a description (its docstring) is needed": blank,
        "a description (its docstring) is needed: ": undescribed,
        "must not begin with an underscore": private,
        "a type hint cannot be resolved": unknown_hint,
        "invalid schema: Unable to generate": unschemed,
        "there is no execute method": NoBody,
        "it must be made without arguments": Needy,
        "execute takes (self, input, ctx)": Lone,
        "Input must be a pydantic model with fields": Rooted,
        "there is no commit method": Uncommitted,
    }


@pytest.mark.parametrize("text", _bad_tools())
def test_a_tool_that_cannot_work_is_a_named_problem_and_no_tool(registry: Registry, text: str) -> None:
    declared = tool(_bad_tools()[text])
    problems = "\n".join(registry.problems())
    assert text in problems
    assert declared.__name__ in problems
    assert registry.tools() == ()


async def _async_gate(_: object) -> bool:
    return True


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"kind": "write"}, "kind is 'write'"),
        ({"permission": "refund"}, "permission is 'refund'"),
        ({"timeout": 0}, "timeout is 0"),
        ({"timeout": float("inf")}, "timeout is inf"),
        ({"timeout": "3"}, "timeout is '3'"),
        ({"on_lost": "drop"}, "on_lost is 'drop'"),
        ({"approver": " ", "kind": "action"}, "approver is blank"),
        ({"approval_mode": "later", "kind": "action"}, "approval_mode is 'later'"),
        ({"confirm": Confirm("a", "b")}, "confirm is for actions only"),
        ({"confirm": Confirm("a", " "), "kind": "action"}, "confirm is a Confirm with a title and a verb"),
        ({"confirm": {"title": "a", "verb": "b"}, "kind": "action"}, "confirm is a Confirm"),
        ({"confirm": Confirm("Close {account", "b"), "kind": "action"}, "confirm is no template"),
        ({"confirm": Confirm("Close {}", "b"), "kind": "action"}, "confirm asks for '', which is no field"),
        ({"confirm": Confirm("a", "b", "{owner.name}"), "kind": "action"}, "asks for 'owner', which is no field"),
        ({"four_eyes": True}, "four_eyes is for actions only"),
        ({"requires_approval": False}, "requires_approval is for actions only"),
        ({"can_use": _async_gate}, "can_use must be a plain function"),
        ({"is_enabled": _async_gate}, "is_enabled must be a plain function"),
        ({"name": "Bad Name"}, "Tool name 'Bad Name'"),
    ],
)
def test_an_option_of_a_wrong_kind_is_a_named_problem(registry: Registry, options: Any, text: str) -> None:
    @tool(**options)
    def take(account: str) -> None:
        """Take."""

    assert text in "\n".join(registry.problems())
    assert registry.tools() == ()


def test_an_unknown_option_is_an_error_where_it_is_written() -> None:
    with pytest.raises(TypeError, match=r"tool\(\) got an unexpected option 'confimed'"):
        tool(confimed=True)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"agent\(\) got an unexpected option 'hand_offs'"):
        agent(hand_offs=[])  # type: ignore[call-overload]


def test_a_name_is_taken_once(registry: Registry) -> None:
    def first(account: str) -> None:
        """First."""

    def second(account: str) -> None:
        """Second."""

    tool(name="take")(first)
    tool(name="take")(second)
    (problem,) = registry.problems()
    assert "'take' is declared twice" in problem
    assert problem.index("first") < problem.index("second")
    assert named(registry, "take").description == "First."


# ---- agents --------------------------------------------------------------------------------------------------------


@tool
def outside(account: str) -> None:
    """Declared when this file is imported, so in the site's own registry."""


def test_an_agent_has_its_methods_and_what_it_lists(registry: Registry) -> None:
    @tool
    def read(account: str) -> None:
        """Read."""

    @tool
    def other(account: str) -> None:
        """Other."""

    @agent(name="desk", prompt="You help the desk.", tools=[read, "other"], history=History(max_messages=4))
    class Desk:
        """Helps at the desk."""

        greeting = "Hello"

        @tool(name="greet")
        def say(self, name: str) -> str:
            """Greet someone."""
            return f"{self.greeting} {name}"

    desk = registry.agent("desk")
    assert desk is not None
    assert (desk.label, desk.description, desk.prompt) == ("Desk", "Helps at the desk.", "You help the desk.")
    assert [each.name for each in registry.tools_of(desk)] == ["greet", "read", "other"]
    greet = named(registry, "greet")
    assert greet.schema["required"] == ["name"]
    assert greet.call(greet.parse({"name": "Ana"}), ctx=None) == "Hello Ana"  # type: ignore[arg-type]
    assert registry.problems() == []


def test_class_attributes_say_what_arguments_do_not(registry: Registry) -> None:
    @agent
    class NightDesk:
        prompt = "You help at night."
        label = "Night"
        max_steps = 3
        roles = ("staff",)

    found = registry.agent("night_desk")
    assert found is not None
    assert (found.prompt, found.label, found.max_steps, found.roles) == ("You help at night.", "Night", 3, ("staff",))


def test_no_list_is_the_apps_own_tools_and_a_star_is_all(registry: Registry) -> None:
    @tool
    def own(account: str) -> None:
        """Of this app."""

    def foreign(account: str) -> None:
        """Of another app."""

    foreign.__module__ = "elsewhere.agents"
    tool(foreign)

    @agent(prompt="Holds a method.", tools=[])
    class Holder:
        @tool
        def mine(self, account: str) -> None:
            """The holder's own."""

    @agent(prompt="Says nothing of tools.")
    class Silent:
        pass

    @agent(prompt="Wants all.", tools="*")
    class Greedy:
        pass

    def tools_of(name: str) -> list[str]:
        found = registry.agent(name)
        assert found is not None
        return [each.name for each in registry.tools_of(found)]

    assert tools_of("silent") == ["own"]
    assert tools_of("holder") == ["mine"]
    assert tools_of("greedy") == ["own", "foreign", "mine"]
    assert registry.tools_of(UNNAMED) == ()


def _looks_far(text: str, context: object) -> None:
    """Judges nothing."""


_looks_far.lookback = -1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"prompt": " "}, "a prompt is needed"),
        ({}, "a prompt is needed"),
        ({"prompt": "p", "max_steps": 0}, "max_steps is 0"),
        ({"prompt": "p", "max_steps": True}, "max_steps is True"),
        ({"prompt": "p", "tools": "all"}, "tools is 'all'"),
        ({"prompt": "p", "tools": ["nowhere"]}, "unknown tool 'nowhere'"),
        ({"prompt": "p", "tools": [outside]}, "unknown tool 'outside'"),
        ({"prompt": "p", "tools": [len]}, "unknown tool 'len'"),
        ({"prompt": "p", "personas": ["nobody"]}, "unknown persona 'nobody'"),
        ({"prompt": "p", "default_persona": "nobody"}, "unknown persona 'nobody'"),
        ({"prompt": "p", "lock_model": True}, "lock_model needs a model"),
        ({"prompt": "p", "approval_mode": "later"}, "approval_mode is 'later'"),
        ({"prompt": "p", "follow_ups": 3}, "follow_ups is 3: True, or FollowUps(count=1 to 10)"),
        ({"prompt": "p", "follow_ups": FollowUps(count=0)}, "follow_ups is FollowUps(count=0)"),
        ({"prompt": "p", "output_type": dict}, "output_type is <class 'dict'>: a pydantic model"),
        ({"prompt": "p", "output_repairs": -1}, "output_repairs is -1: a whole number from 0 up"),
        ({"prompt": "p", "input_processors": ["x"]}, "input processor 'x' is not callable"),
        ({"prompt": "p", "output_processors": [None]}, "output processor None is not callable"),
        ({"prompt": "p", "output_processors": [_looks_far]}, "lookback of output processor"),
        ({"prompt": "p", "permission": "use"}, "permission is 'use'"),
        ({"prompt": "p", "contributors": ["text"]}, "contributor 'text' is not callable"),
        ({"prompt": "p", "name": "Bad Name"}, "Agent name 'Bad Name'"),
    ],
)
def test_an_agent_that_cannot_work_is_a_named_problem(registry: Registry, options: Any, text: str) -> None:
    @agent(**options)
    class Desk:
        pass

    assert text in "\n".join(registry.problems())


def test_a_method_outside_of_an_agent_is_a_named_problem(registry: Registry) -> None:
    class Lonely:
        @tool
        def lost(self, account: str) -> None:
            """Lost."""

    assert Lonely.lost.__qualname__ in "\n".join(registry.problems())


def test_personas_are_found_by_id_and_alias(registry: Registry) -> None:
    pirate = persona("pirate", "Pirate", "Speak like a pirate.", aliases=["corsair"], allowed_tools=["read"])
    calm = persona("calm", "Calm", lambda base: f"{base} Be calm.")
    agent(name="desk", prompt="p", personas=[pirate, "calm"], default_persona="calm")(type("Desk", (), {}))
    desk = registry.agent("desk")
    assert desk is not None
    assert registry.persona("corsair") is pirate
    assert registry.personas_of(desk) == (pirate, calm)
    assert registry.default_persona_of(desk) is calm
    assert (pirate.prompt_from("Base."), calm.prompt_from("Base.")) == ("Speak like a pirate.", "Base. Be calm.")
    assert registry.problems() == []
    persona("corsair", "Other", "Text.")
    assert "'corsair' is declared twice" in "\n".join(registry.problems())


# ---- settings that decide about them -------------------------------------------------------------------------------


def test_the_more_specific_history_replaces_the_other_entirely(registry: Registry) -> None:
    agent(name="plain", prompt="p")(type("Plain", (), {}))
    agent(name="own", prompt="p", history=History(max_messages=2))(type("Own", (), {}))
    plain, own = registry.agent("plain"), registry.agent("own")
    assert plain is not None
    assert own is not None
    policy = window_history(7)
    with override_settings(AGENT={}):
        assert resolve_history(plain) is UNBOUNDED
    with override_settings(AGENT={"HISTORY": {"max_tokens": 9}}):
        assert resolve_history(plain) == window_history(None, 9)
        assert resolve_history(own) == window_history(2)
    with override_settings(AGENT={"HISTORY": History(max_tokens=9), "HISTORY_POLICY": policy}):
        assert resolve_history(plain) is policy
        assert resolve_history(own) == window_history(2)


MODEL_ROWS = [{"id": "big", "provider": "b"}, {"id": "small", "label": "Small", "default": True}]


def test_a_model_is_its_catalogue_providers_and_any_other_the_default_ones() -> None:
    a, b = ScriptedProvider([], model="a-model"), ScriptedProvider([], model="b-model")
    with override_settings(AGENT={"PROVIDERS": {"a": a, "b": b}, "DEFAULT_PROVIDER": "a", "MODELS": MODEL_ROWS}):
        assert provider_for("big") == ("b", b, "big")
        assert provider_for(None) == ("a", a, "small")
        assert provider_for("elsewhere") == ("a", a, "elsewhere")
    with override_settings(AGENT={"PROVIDERS": {"b": b}}):
        assert provider_for(None)[:2] == ("b", b)
        assert provider_for(None).model == b.default_model
    with override_settings(AGENT={"PROVIDERS": {"a": a, "b": b}}), pytest.raises(ImproperlyConfigured, match="DEFAULT"):
        provider_for(None)
    with override_settings(AGENT={}), pytest.raises(ImproperlyConfigured, match="no model provider"):
        provider_for(None)


def test_a_provider_is_made_once_with_its_options_until_the_settings_change() -> None:
    entry = {"class": "agent.providers.scripted.ScriptedProvider", "script": ["Hi."], "model": "m1"}
    with override_settings(AGENT={"PROVIDERS": {"s": entry}}):
        first = provider_for(None)
        assert first.model == "m1"
        assert provider_for("x").provider is first.provider
    with override_settings(AGENT={"PROVIDERS": {"s": {**entry, "model": "m2"}}}):
        assert provider_for(None).model == "m2"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"MAX_STEP": 3}, "AGENT['MAX_STEP']: there is no such setting"),
        ({"MAX_STEPS": 0}, "AGENT['MAX_STEPS']: must be a whole number from 1 up, not 0."),
        ({"MAX_STEPS": True}, "must be a whole number from 1 up"),
        ({"MODEL_RETRIES": -1}, "must be a whole number from 0 up"),
        ({"TOOL_TIMEOUT_SECONDS": "9"}, "a number of seconds above 0, or None"),
        ({"EXPOSE_ERRORS": "yes"}, "must be True or False"),
        ({"TOOL_EMPTY_ROLES": "closed"}, "must be 'open' or 'deny'"),
        ({"TOOL_DEFAULT_ROLES": "staff"}, "must be a list of texts"),
        ({"RUNNER": "threads"}, "'inline', 'celery' or a dotted path"),
        ({"SINK": 3}, "'database', 'memory', 'redis' or a dotted path"),
        ({"REPORT_TIME_ZONE": "Mars/Olympus"}, "the name of a time zone"),
        ({"HISTORY": {"max_message": 3}}, "max_messages, max_tokens"),
        ({"PROVIDERS": {"a": {"model": "x"}}}, "AGENT['PROVIDERS']: must be a dict of name"),
        ({"MODELS": [{"id": "a"}, {"id": "a"}]}, "with each id once"),
        ({"MODELS": [{"id": "a", "price": 3}]}, "AGENT['MODELS']"),
        ({"STORE": "Store"}, "a dotted path, or the thing itself"),
        ([], "AGENT: must be a dict"),
    ],
)
def test_a_wrong_setting_is_named_with_what_is_allowed(given: object, text: str) -> None:
    with override_settings(AGENT=given):
        assert text in "\n".join(setting_problems())
        with pytest.raises(ImproperlyConfigured, match="AGENT"):
            agent_settings()


def test_a_secret_is_not_repeated_in_the_message_about_it() -> None:
    with override_settings(AGENT={"CONFIRM_TOKEN_SECRET": ["marker"], "PROVIDERS": {"a": {"api_key": "marker"}}}):
        problems = setting_problems()
        assert len(problems) == 2
        assert "marker" not in "\n".join(problems)


def test_defaults_follow_the_site_and_the_settings_are_read_anew_when_they_change() -> None:
    with override_settings(AGENT={}, DEBUG=True, TIME_ZONE="Europe/Berlin", SECRET_KEY="a"):
        first = agent_settings()
        assert (first.expose_errors, first.report_time_zone.key, first.max_steps) == (True, "Europe/Berlin", 8)
        assert agent_settings() is first
    with override_settings(AGENT={"MAX_STEPS": 3, "EXPOSE_ERRORS": True}, DEBUG=False, SECRET_KEY="b"):
        second = agent_settings()
        assert (second.expose_errors, second.max_steps) == (True, 3)
        assert second.confirm_token_secret not in {first.confirm_token_secret, "b"}
        assert second.confirm_token_secret not in repr(second)


def test_importing_the_package_imports_neither_models_nor_django() -> None:
    code = "import agent, sys; assert 'django' not in sys.modules; from agent import tool, agent, ToolContext; "
    code += "assert 'agent.models' not in sys.modules and 'pydantic_ai' not in sys.modules; tool(lambda x: x)"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


def test_a_card_says_the_inputs_values_and_reads_none_of_them_as_a_template() -> None:
    confirm = Confirm("Refund {invoice}", "Refund", "{cents:,} cents to {to}, {urgent}, {tags}, {note}")
    fields = {"invoice": "{to}", "cents": 1200, "to": "{0}", "urgent": True, "tags": ["a", "b"], "note": None}
    assert confirm.filled(fields) == {
        "title": "Refund {to}",
        "verb": "Refund",
        "detail": '1,200 cents to {0}, yes, ["a","b"], ',
    }
    assert Confirm("a", "b").filled({}) == {"title": "a", "verb": "b"}


def test_hand_offs_are_tools_named_after_the_agents_that_are_asked(registry: Registry) -> None:
    agent(name="field-work", prompt="p", tools=[], label="Field work")(type("FieldWork", (), {}))
    handoffs: list[Handoff | str] = [
        "field-work",
        Handoff("field-work", detached=True, description="Have it surveyed."),
    ]
    desk = agent(name="desk", prompt="p", tools=[], handoffs=handoffs)(type("Desk", (), {}))
    asked, started = handoffs_of(desk.__agent__)  # type: ignore[attr-defined]
    assert (asked.name, asked.kind, started.name) == ("ask_field_work", "agent", "start_field_work")
    assert '"Field work"' in asked.description
    assert started.description == "Have it surveyed."
    assert asked.schema["required"] == ["task"]
    assert registry.problems() == []


@pytest.mark.parametrize(
    ("handoffs", "text"),
    [
        (["desk"], "it hands off to itself"),
        (["nobody"], "unknown agent 'nobody'"),
        (["clerk", "clerk"], "two of its tools have the name 'ask_clerk'"),
        (["c" * 64], "is too long"),
    ],
)
def test_a_hand_off_that_cannot_work_is_a_named_problem(registry: Registry, handoffs: list[str], text: str) -> None:
    for name in ("clerk", "c" * 64):
        agent(name=name, prompt="p", tools=[])(type("Clerk", (), {}))
    agent(name="desk", prompt="p", tools=[], handoffs=handoffs)(type("Desk", (), {}))
    assert text in "\n".join(registry.problems())
