"""What becomes of a run that a person's own agent asked for, as events of its conversation (spec 12 §5, experimental).

Each is called in the unit that makes it true, which holds the thread's row: the conversation's is locked behind it.
"""

from __future__ import annotations

from functools import partial

from agent.conf import agent_settings
from agent.domain.personal import ConversationPatch, ConversationStatus, Json
from agent.domain.runs import Run
from agent.flows import dispatch
from agent.store.base import AgentStore
from agent.store.companions import PERSONAL_AGENT, personal_agent_store

AGENT, PERSON = "agent", "person"


def answered(store: AgentStore, run: Run) -> None:
    """The run completed: the words of its last message."""
    if _is_off(store) or run.depth:
        return
    said = [one for one in store.messages_of_run(run.thread_id, run.id) or () if one.role == "assistant"]
    last = said[-1] if said else None
    _over(store, run, "message", {"messageId": last.id if last else None, "text": last.content if last else ""})


def failed(store: AgentStore, run: Run, code: str | None) -> None:
    """The run failed or was stopped."""
    if not _is_off(store) and not run.depth:
        _over(store, run, "failed", {"code": code})


def requested(store: AgentStore, run: Run, *, call_id: str, tool: str, proposal_id: str | None) -> None:
    """A person is asked about an action of the run; the personal agent is told, and decides nothing."""
    if _is_off(store):
        return
    personal = personal_agent_store(store)
    for conversation in personal.conversations_of_thread(run.thread_id):
        if conversation.active_run_id == run.id:
            told: Json = {"runId": run.id, "toolCallId": call_id, "toolName": tool, "proposalId": proposal_id}
            personal.append_event(conversation.id, "approval-requested", told, f"{call_id}:requested")
            patch = ConversationPatch(status=ConversationStatus.WAITING, responder=PERSON)
            personal.update_conversation(conversation.id, patch)


def settled(store: AgentStore, *, thread_id: str, call_id: str | None, decision: str) -> None:
    """Somebody decided about an action that was asked for in the thread, maybe after the run was over."""
    if _is_off(store) or call_id is None:
        return
    personal = personal_agent_store(store)
    for conversation in personal.conversations_of_thread(thread_id):
        told: Json = {"toolCallId": call_id, "decision": decision}
        personal.append_event(conversation.id, "approval-settled", told, f"{call_id}:settled")


def _is_off(store: AgentStore) -> bool:
    return not agent_settings().personal_agent or getattr(store, PERSONAL_AGENT, None) is None


def _over(store: AgentStore, run: Run, kind: str, told: Json) -> None:
    """Its turn is over; and whatever run freed the thread, what waits for it may go on now."""
    personal = personal_agent_store(store)
    for conversation in personal.conversations_of_thread(run.thread_id):
        if conversation.active_run_id == run.id:
            personal.append_event(conversation.id, kind, {"runId": run.id, **told}, f"{run.id}:over")
            personal.finish_turn(conversation.id, run.id)
            if conversation.status == ConversationStatus.WAITING:
                patch = ConversationPatch(status=ConversationStatus.OPEN, responder=AGENT)
                personal.update_conversation(conversation.id, patch)
        store.on_commit(partial(dispatch.personal, conversation.id))
