"""Threads and messages."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import MultipleResults, initialize, multiple, rule

from agent.domain.actor import Actor
from agent.domain.commands import UNSET, AppendMessage, SaveSummary, ThreadPatch
from agent.domain.snapshots import Json
from tests.store.twins.machine import ACTORS, Twins, actors, good_names, json_values, limits, names, runs, texts

unset_or = st.just(UNSET)
items = st.sampled_from([[], [{"id": "call-0", "name": "find"}, {"id": "call-1"}], [{"id": "x", "deep": ["call-0"]}]])
nobody = st.just("nobody")
POLICIES = ["policy", "Policy", "policy "]
policies = st.sampled_from([*POLICIES, "p" * 65])


class Conversation(Twins):
    @initialize(target=Twins.messages)
    def a_conversation(self) -> MultipleResults[str]:
        """A thread with a question, an answer with calls, and another question."""
        thread = self.both(lambda store: store.create_thread(actor=ACTORS[1], active_run_id="run-0")).id
        self.seen_threads.append(thread)
        calls = [{"id": f"call-{number}", "name": "find", "input": {}} for number in range(2)]
        said = [
            AppendMessage(thread_id=thread, role="user", content="q1", run_id="run-0"),
            AppendMessage(thread_id=thread, role="assistant", content="", run_id="run-0", tool_calls=calls),
            AppendMessage(thread_id=thread, role="user", content="q2"),
        ]
        return multiple(*[self.both(lambda store, one=one: store.append_message(one)).id for one in said])  # type: ignore[misc]

    @rule(
        target=Twins.threads,
        actor=actors,
        title=st.none() | texts,
        transient=st.booleans(),
        agent=names,
        external_id=st.sampled_from([None, None, "x", "X", "y" * 256]),
        held_by=st.none() | runs,
        said=st.none() | texts,
    )
    def create_thread(
        self,
        actor: Actor,
        title: str | None,
        transient: bool,
        agent: str | None,
        external_id: str | None,
        held_by: str | None,
        said: str | None,
    ) -> str | MultipleResults[str]:
        first = None if said is None else AppendMessage(thread_id="", role="assistant", content=said, run_id=held_by)
        made = self.both(
            lambda store: store.create_thread(
                actor=actor,
                title=title,
                transient=transient,
                agent_name=agent,
                external_id=external_id,
                active_run_id=held_by,
                first_message=first,
            )
        )
        return self._kept(made)

    def _kept(self, made: Json) -> str | MultipleResults[str]:
        if isinstance(made, dict):
            return multiple()
        self.seen_threads.append(made.id)
        return str(made.id)

    @rule(
        target=Twins.messages,
        thread=Twins.threads | nobody,
        role=st.sampled_from(["user", "assistant", "assistant", "system"]),
        content=texts,
        run=st.none() | runs,
        calls=st.none() | items,
        ui=st.none() | items,
        agent=names,
        usage=json_values,
        undo=st.sampled_from([False, False, False, True]),
    )
    def append(
        self,
        thread: str,
        role: str,
        content: str,
        run: str | None,
        calls: Json,
        ui: Json,
        agent: str | None,
        usage: Json,
        undo: bool,
    ) -> str | MultipleResults[str]:
        message = AppendMessage(
            thread_id=thread,
            role=role,
            content=content,
            run_id=run,
            tool_calls=calls,
            tool_results=calls,
            ui=ui,
            agent_name=agent,
            usage=usage,
            reasoning=content or None,
        )
        stored = self.both(lambda store: store.append_message(message), undo=undo)
        return multiple() if undo or isinstance(stored, dict) else str(stored.id)

    @rule(thread=Twins.threads, message=Twins.messages | nobody, own=st.booleans(), undo=st.booleans())
    def truncate(self, thread: str, message: str, own: bool, undo: bool) -> None:
        place = (own and self.memory.thread_of_message(message)) or thread
        self.both(lambda store: store.truncate_from(place, message), undo=undo)

    @rule(thread=Twins.threads | nobody, undo=st.booleans())
    def regenerate(self, thread: str, undo: bool) -> None:
        self.both(lambda store: store.truncate_after_last_user(thread), undo=undo)

    @rule(target=Twins.threads, thread=Twins.threads | nobody, message=Twins.messages, own=st.booleans())
    def fork(self, thread: str, message: str, own: bool) -> str | MultipleResults[str]:
        place = (own and self.memory.thread_of_message(message)) or thread
        return self._kept(self.both(lambda store: store.fork_thread(place, message)))

    @rule(thread=Twins.threads | nobody)
    def soft_delete(self, thread: str) -> None:
        self.both(lambda store: store.soft_delete_thread(thread))

    @rule(thread=Twins.threads | nobody, undo=st.booleans())
    def purge(self, thread: str, undo: bool) -> None:
        self.both(lambda store: store.purge_thread(thread), undo=undo)

    @rule(age=st.sampled_from([0, 30]), limit=limits)
    def find_deleted(self, age: int, limit: int) -> None:
        self.both(lambda store: store.deleted_threads(self.clock.now - timedelta(seconds=age), limit))

    @rule(thread=Twins.threads, title=texts)
    def rename(self, thread: str, title: str) -> None:
        self.both(lambda store: store.set_title(thread, title))
        self.both(lambda store: store.promote_thread(thread))

    @rule(thread=Twins.threads, title=unset_or | texts, agent=unset_or | names, model=unset_or | good_names)
    def patch(self, thread: str, title: Json, agent: Json, model: Json) -> None:
        wanted = ThreadPatch(title=title, default_agent=agent, model=model)
        self.both(lambda store: store.update_thread(thread, wanted))

    @rule(thread=Twins.threads | nobody, run=runs, replacing=st.none() | runs)
    def claim_thread(self, thread: str, run: str, replacing: str | None) -> None:
        self.both(lambda store: store.claim_active_run(thread, run, replacing))

    @rule(thread=Twins.threads | nobody, run=runs, title=st.none() | texts)
    def release_thread(self, thread: str, run: str, title: str | None) -> None:
        self.both(lambda store: store.release_active_run(thread, run, title=title))

    @rule(thread=Twins.threads, run=st.none() | runs)
    def set_holder(self, thread: str, run: str | None) -> None:
        self.both(lambda store: store.set_active_run(thread, run))

    @rule(message=Twins.messages | nobody, results=items, follow_ups=st.sampled_from([[], ["a", "b\x00"]]))
    def amend(self, message: str, results: Json, follow_ups: list[str]) -> None:
        self.both(lambda store: store.set_message_tool_results(message, results))
        self.both(lambda store: store.set_message_tool_calls(message, results))
        self.both(lambda store: store.set_message_ui(message, results))
        self.both(lambda store: store.set_message_follow_ups(message, follow_ups))

    @rule(message=Twins.messages | nobody, value=st.sampled_from([None, {"value": "up"}]))
    def feedback(self, message: str, value: Json) -> None:
        self.both(lambda store: store.set_message_feedback(message, value))
        self.both(lambda store: store.thread_of_message(message))

    @rule(thread=Twins.threads | nobody, limit=st.none() | limits, before=st.sampled_from([None, 0, 1, 3, 99]))
    def read_page(self, thread: str, limit: int | None, before: int | None) -> None:
        self.both(lambda store: store.load_thread_for_turn(thread, message_limit=limit, before_seq=before))

    @rule(
        thread=Twins.threads | nobody,
        policy=policies,
        up_to_seq=st.sampled_from([0, 1, 2, 3, 99]),
        text=texts,
        model=st.sampled_from(["m", "m\x00" * 70]),
        undo=st.sampled_from([False, False, True]),
    )
    def summarize(self, thread: str, policy: str, up_to_seq: int, text: str, model: str, undo: bool) -> None:
        made = SaveSummary(thread_id=thread, policy_fingerprint=policy, up_to_seq=up_to_seq, text=text, model_id=model)
        self.both(lambda store: store.save_thread_summary(made), undo=undo)

    @rule(thread=Twins.threads | nobody, policy=policies)
    def read_summary(self, thread: str, policy: str) -> None:
        self.both(lambda store: store.thread_summary(thread, policy))

    @rule(thread=Twins.threads | nobody, run=runs, limit=limits)
    def read(self, thread: str, run: str, limit: int) -> None:
        self.both(lambda store: store.messages_of_run(thread, run))
        self.both(lambda store: store.active_run_for_thread(thread))
        if len(self.memory.threads_held.keys(run)) < 2:  # a run has one thread, whatever these rules made of it
            self.both(lambda store: store.owner_of_active_run(run))
        for actor in ACTORS:
            self.both(lambda store, actor=actor: store.list_threads(actor, limit))  # type: ignore[misc]

    def compare_everything(self) -> None:
        for thread in self.seen_threads:
            self.both(lambda store, key=thread: store.get_thread(key))  # type: ignore[misc]
            self.both(lambda store, key=thread: store.thread_scope(key))  # type: ignore[misc]
            self.both(lambda store, key=thread: store.owner_of_thread(key))  # type: ignore[misc]
            self.both(lambda store, key=thread: store.persona_for_thread(key))  # type: ignore[misc]
            for policy in POLICIES:
                self.both(lambda store, key=thread, policy=policy: store.thread_summary(key, policy))  # type: ignore[misc]
        for actor in ACTORS:
            self.both(lambda store, actor=actor: store.list_threads(actor))  # type: ignore[misc]
            self.both(lambda store, actor=actor: store.thread_by_external_id(actor.ref, "x"))  # type: ignore[misc]
        super().compare_everything()
