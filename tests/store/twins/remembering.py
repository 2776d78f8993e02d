"""Facts that outlive a thread."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule

from agent.domain.memories import SaveMemory
from tests.store.twins.machine import Twins, refs, texts

SCOPES = ["actor:ana", "actor:Ana", "tenant:", "global"]
scopes = st.sampled_from([*SCOPES, "s" * 301, "\x00"])
keys = st.sampled_from(["name", "Name", "k" * 129, "\ud800"])


class Remembering(Twins):
    @rule(scope=scopes, key=keys, text=texts, actor=st.none() | refs, pinned=st.booleans(), undo=st.booleans())
    def remember(self, scope: str, key: str, text: str, actor: str | None, pinned: bool, undo: bool) -> None:
        fact = SaveMemory(scope=scope, key=key, text=text, origin_author="human", origin_actor_ref=actor, pinned=pinned)
        self.both(lambda store: store.upsert_memory(fact), undo=undo)

    @rule(asked=st.lists(st.sampled_from(SCOPES), max_size=3), place=st.integers(0, 3))
    def forget(self, asked: list[str], place: int) -> None:
        found = self.both(lambda store: store.list_memories(asked))
        memory_id = found[place].id if place < len(found) else "nobody"
        self.both(lambda store: store.delete_memory(memory_id))
        self.both(lambda store: store.get_memory(memory_id))

    def compare_everything(self) -> None:
        self.both(lambda store: store.list_memories(SCOPES))
        super().compare_everything()
