"""`agent_erase_actor`: no table holds a word of the person, and every figure of the console is what it was."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from django.apps import apps
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db.models import CharField, TextField

from agent.domain.actor import Actor
from agent.domain.personal import MESSAGE_RECEIVED, NewConnection, NewConversation
from agent.models import MemoryFact, StagedAttachment, Thread, ToolCall
from agent.providers.scripted import ScriptedReply, call
from agent.registry import ToolContext, agent, tool
from agent.store.orm.personal_agent import OrmPersonalAgent
from agent.store.orm.personal_connections import OrmPersonalConnections
from governance.days import DayRange
from governance.queries import Selection, reliability, spend_overview, tool_stats
from tests.edges.admin_rows import NOW
from tests.flows.conftest import Site

MakeSite = Callable[..., Site]
WORD = "tulip"
BEA = Actor("bea")


def words() -> set[str]:
    """The tables of ours in which the word stands."""
    found = set()
    for model in (*apps.get_app_config("agent").get_models(), *apps.get_app_config("governance").get_models()):
        texts = [field.attname for field in model._meta.concrete_fields if isinstance(field, CharField | TextField)]
        if model._meta.managed and any(WORD in str(row) for row in model._default_manager.values_list(*texts)):
            found.add(model._meta.db_table)
    return found


def figures() -> tuple[Any, ...]:
    everything = Selection.of(DayRange.of(date(2020, 1, 1), None))
    overview = spend_overview(everything)
    return overview, reliability(everything), tool_stats(everything)


def keep_personal(said: str) -> None:
    """Alice's own agent has said the word, wherever it could."""
    kept, allowed = OrmPersonalAgent(), OrmPersonalConnections()
    made = kept.create_conversation(
        NewConversation(client_id="assistant", user_id="alice", agent_name="desk", context={"said": said})
    )
    kept.append_event(made.id, MESSAGE_RECEIVED, {"said": said})
    kept.claim_message("assistant", "m", "f" * 64, conversation_id=made.id)
    kept.complete_message("assistant", "m", {"status": 200, "body": said})
    allowed.connect(NewConnection(client_id="assistant", user_id="alice", scopes=[], metadata={"said": said}))


def erased(ref: str) -> str:
    out = io.StringIO()
    call_command("agent_erase_actor", ref, "--noinput", stdout=out)
    return out.getvalue()


@pytest.fixture
def desk(site: MakeSite) -> Site:
    """Alice and Bea each have a turn with a tool call, said with the word."""

    def say(request: Any) -> Any:
        last = request.messages[-1]
        return f"A {WORD}." if last.tool_results else ScriptedReply(calls=[call("find", what=WORD)])

    made = site(say)

    @tool
    def find(ctx: ToolContext, what: str) -> str:
        """Find it."""
        return f"{what} found"

    @agent(name="desk", prompt="Answer.", tools=[find])
    class Desk:
        """Ask where it is."""

    return made


def test_no_word_is_left_and_no_total_changes(desk: Site) -> None:
    run = desk.turn(f"Where is my {WORD}?", agent="desk")
    assert run.status == "completed"
    MemoryFact.objects.create(
        scope="actor:alice", key=WORD, text=WORD, origin_author="agent", created_at=NOW, updated_at=NOW
    )
    file = default_storage.save(f"{WORD}.txt", ContentFile(b"red"))
    StagedAttachment.objects.create(
        actor_ref="alice", name=WORD, content_type="text/plain", size=3, file=file, status="staged", created_at=NOW
    )
    keep_personal(WORD)
    before = figures()
    assert {"agent_pap_conversation", "agent_pap_event", "agent_pap_message", "agent_pap_connection"} <= words()
    assert {"agent_thread", "agent_message", "agent_tool_call", "agent_run_step", "agent_memory"} <= words()
    assert erased("alice") == "1 conversations, 1 runs, 0 proposals emptied; 1 files removed.\n"
    assert words() == set()
    assert figures() == before
    assert not default_storage.exists(file)
    assert Thread.objects.get().deleted_at is not None
    assert (ToolCall.objects.get().status, ToolCall.objects.get().actor_ref) == ("auto_executed", "alice")
    assert erased("alice").startswith("1 conversations")  # may be repeated


def test_others_keep_theirs(desk: Site) -> None:
    kept = desk.turn(f"My {WORD}.", agent="desk", actor=BEA)
    before = desk.messages(kept.thread_id)
    desk.turn(f"Where is my {WORD}?", agent="desk")
    erased("alice")
    assert desk.messages(kept.thread_id) == before
    assert desk.steps(kept.id)


def test_it_is_refused_while_a_turn_is_open(desk: Site) -> None:
    sent = desk.send(f"Where is my {WORD}?", agent="desk")
    with pytest.raises(CommandError, match="is not over"):
        erased("alice")
    assert desk.messages(sent.thread_id)[0].content == f"Where is my {WORD}?"
