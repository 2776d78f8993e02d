"""Files in a conversation: sent by id, given to the model anew each time, kept as long as a message carries them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from io import BytesIO, StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from agent.domain.actor import Actor
from agent.domain.media import Attachment
from agent.domain.model_calls import ShownMessage
from agent.errors import Conflict, Invalid, NotAllowed, NotSupported
from agent.flows import attachments, queue, threads
from agent.flows.queue import Edit
from agent.store import OrmStore
from agent.testing import InMemoryStagingStore
from tests.flows.conftest import ALICE, Site

BO = Actor("bo")
TEXT = b"Three lamps.\n"


@pytest.fixture
def staging() -> InMemoryStagingStore:
    return InMemoryStagingStore()


def taking(staging: object, **more: Any) -> dict[str, Any]:
    return {"ATTACHMENTS": {"STORE": staging}, **more}


def stage(actor: Actor = ALICE, name: str = "lamps.txt", content: bytes = TEXT) -> Attachment:
    return attachments.stage(actor, BytesIO(content), name=name, size=len(content))


def given(site: Site, call: int = -1) -> list[ShownMessage]:
    return [message for message in site.provider.requests[call].messages if message.role == "user"]


def test_a_model_is_given_the_bytes_and_the_journal_is_not(
    site: Callable[..., Site], staging: InMemoryStagingStore
) -> None:
    here = site(["Three.", "Still three."], **taking(staging))
    file = stage()
    first = here.turn("How many?", attachments=(file.media_id,))
    (message, _) = here.messages(first.thread_id)
    assert message.attachments == [file.to_json()]
    (shown,) = given(here)
    assert [(one.name, one.content_type, one.data) for one in shown.attachments] == [("lamps.txt", "text/plain", TEXT)]
    second = here.turn("Sure?", thread_id=first.thread_id)
    assert [len(one.attachments) for one in given(here)] == [1, 0]
    steps = {step.name: str(step.payload) for step in here.steps(second.id)}
    assert file.media_id in steps["load:thread"]
    assert "Three lamps" not in "".join(steps.values())


def test_a_file_that_is_gone_and_a_model_that_reads_none_are_told_in_words(
    site: Callable[..., Site], staging: InMemoryStagingStore
) -> None:
    here = site(["One.", "Two.", "Three."], **taking(staging))
    file = stage()
    run = here.turn("Look", attachments=(file.media_id,))
    here.provider.supports_files = False  # type: ignore[attr-defined]
    here.turn("And?", thread_id=run.thread_id)
    assert given(here)[0].content == "Look\n\n[The file lamps.txt (text/plain) was sent, and you cannot read files.]"
    here.provider.supports_files = True  # type: ignore[attr-defined]
    staging.delete(ALICE, file.media_id)
    here.turn("And?", thread_id=run.thread_id)
    assert given(here)[0].content == "Look\n\n[The file lamps.txt is no longer there.]"
    detail, _ = threads.read(ALICE, run.thread_id)
    assert detail.messages[0].attachments == [{**file.to_json(), "url": None}]


def test_only_own_files_are_sent(site: Callable[..., Site], staging: InMemoryStagingStore) -> None:
    here = site([], **taking(staging))
    for media_id in (stage(BO).media_id, "unknown", staging.begin(ALICE, name="a", content_type="a", size=1).media_id):
        with pytest.raises(NotAllowed) as refused:
            here.send("Look", attachments=(stage().media_id, media_id))
        assert refused.value.code == "attachment_forbidden"
    assert here.store.list_threads(ALICE) == []


def test_a_waiting_message_keeps_its_files_until_they_are_dropped(
    site: Callable[..., Site], staging: InMemoryStagingStore
) -> None:
    here = site(["One.", "Two."], **taking(staging))
    file, other = stage(), stage(name="other.txt")
    first = here.send("Hello")
    waits = here.wait("", first.thread_id, attachments=(file.media_id,))
    queue.edit(ALICE, waits.message_id, Edit(message="Look"))
    (item,) = queue.read(ALICE, first.thread_id).items
    assert item.attachments == [file.to_json()]
    with pytest.raises(Conflict):
        attachments.discard(ALICE, file.media_id)
    with pytest.raises(NotAllowed):
        queue.edit(ALICE, waits.message_id, Edit(attachments=(stage(BO).media_id,)))
    queue.edit(ALICE, waits.message_id, Edit(attachments=(other.media_id,)))
    attachments.discard(ALICE, file.media_id)
    here.drive(first.run_id)
    here.drive(waits.message_id)
    assert [one.name for one in given(here)[-1].attachments] == ["other.txt"]
    assert here.messages(first.thread_id)[2].attachments == [other.to_json()]


def test_references_follow_the_messages(site: Callable[..., Site], staging: InMemoryStagingStore) -> None:
    here = site(["One.", "Again."], **taking(staging))
    file = stage()
    run = here.turn("Look", attachments=(file.media_id,))
    again = here.send(None, thread_id=run.thread_id, regenerate=True)
    here.drive(again.run_id)
    assert [one.name for one in given(here)[0].attachments] == ["lamps.txt"]
    said = here.messages(run.thread_id)[0].id
    fork = threads.fork(ALICE, run.thread_id, said)
    later = staging.clock() + timedelta(hours=1)
    threads.truncate(ALICE, run.thread_id, said)
    assert attachments.collectable_attachments(ALICE, older_than=later) == []
    threads.delete(ALICE, fork.id)  # put away, and not gone
    assert attachments.collectable_attachments(ALICE, older_than=later) == []
    assert here.store.purge_thread(fork.id)
    assert [one.media_id for one in attachments.collectable_attachments(ALICE, older_than=later)] == [file.media_id]


def test_a_sweep_deletes_nothing_that_it_is_not_sure_of(
    site: Callable[..., Site], staging: InMemoryStagingStore
) -> None:
    site([], **taking(staging))
    old, mine = stage(), stage(BO)
    age = staging.clock() + timedelta(seconds=5)
    with pytest.raises(Invalid):
        attachments.collectable_attachments(ALICE, older_than=age.replace(tzinfo=None))
    with pytest.raises(TypeError):
        attachments.collectable_attachments(ALICE)  # type: ignore[call-arg]
    assert [one.media_id for one in attachments.collectable_attachments(ALICE, older_than=age)] == [old.media_id]
    assert attachments.collectable_attachments(ALICE, older_than=staging.clock() - timedelta(seconds=60)) == []
    assert attachments.collectable_attachments(ALICE, older_than=age, limit=0) == []
    assert staging.resolve(ALICE, old.media_id)
    assert staging.resolve(BO, mine.media_id)


class PassesOverAges(InMemoryStagingStore):
    def list(self, actor: Actor, **hints: Any) -> list[Attachment]:
        return list(super().list(actor))


class ListsNothing:
    """A staging store of a host with the required methods alone."""

    def __init__(self) -> None:
        self._kept = InMemoryStagingStore()
        self.stage, self.resolve, self.delete = self._kept.stage, self._kept.resolve, self._kept.delete


class KnowsNoReferences(OrmStore):
    capabilities = OrmStore.capabilities - {"attachment_references"}


def test_a_store_that_passes_over_the_age_harms_nobody(site: Callable[..., Site]) -> None:
    staging = PassesOverAges()
    site([], **taking(staging))
    young = stage()
    assert young.staged_at is not None
    assert attachments.collectable_attachments(ALICE, older_than=young.staged_at) == []


def test_a_missing_half_is_refused_and_not_taken_for_nothing_referenced(site: Callable[..., Site]) -> None:
    later = OrmStore().clock() + timedelta(days=1)
    for settings in (taking(ListsNothing()), taking(InMemoryStagingStore(), STORE=KnowsNoReferences)):
        site([], **settings)
        stage()
        with pytest.raises(NotSupported):
            attachments.collectable_attachments(ALICE, older_than=later)


def test_the_command_lists_and_deletes_only_when_told(site: Callable[..., Site], staging: InMemoryStagingStore) -> None:
    here = site(["One."], **taking(staging))
    kept, loose = stage(), stage(name="loose.txt")
    here.turn("Look", attachments=(kept.media_id,))
    now = staging.clock
    staging.clock = lambda: now() - timedelta(hours=50)
    forgotten = stage(BO, "old.txt")
    staging.clock = now
    out = StringIO()
    call_command("agent_sweep_attachments", "--older-than", "48h", stdout=out)
    assert f"{forgotten.media_id}  bo" in out.getvalue()
    assert "1 file that" in out.getvalue()
    assert staging.resolve(BO, forgotten.media_id)
    call_command("agent_sweep_attachments", "--older-than", "48h", "--delete", stdout=out)
    assert staging.resolve(BO, forgotten.media_id) is None
    assert staging.resolve(ALICE, kept.media_id)
    assert staging.resolve(ALICE, loose.media_id)
    for wrong in ([], ["--older-than", "two days"]):
        with pytest.raises(CommandError):
            call_command("agent_sweep_attachments", *wrong)


@pytest.mark.parametrize(
    ("content", "name", "code"),
    [
        (b"", "a.txt", "invalid_body"),
        (TEXT * 10, "a.txt", "too_large"),
        (b"<svg onload='x()'/>", "a.png", "unsupported_type"),
        (b"<!doctype html>", "a.png", "unsupported_type"),
        (b"MZ\x00", "a.png", "unsupported_type"),
    ],
)
def test_what_is_not_taken_is_never_staged(
    site: Callable[..., Site], staging: InMemoryStagingStore, content: bytes, name: str, code: str
) -> None:
    site([], ATTACHMENTS={"STORE": staging, "MAX_BYTES": 100})
    with pytest.raises(Invalid) as refused:
        stage(name=name, content=content)
    assert refused.value.code == code
    assert staging.list(ALICE) == []


def test_what_only_a_waiting_message_or_a_fork_carries_or_was_just_sent_up_is_kept(
    site: Callable[..., Site], staging: InMemoryStagingStore
) -> None:
    """B154: by the list, and by the command that deletes."""
    here = site(["One.", "Two."], **taking(staging))
    now = staging.clock
    staging.clock = lambda: now() - timedelta(days=3)
    waiting, forked = stage(), stage(name="forked.txt")
    staging.clock = now
    loose = stage(name="loose.txt")
    first = here.turn("Look", attachments=(forked.media_id,))
    threads.fork(ALICE, first.thread_id, here.messages(first.thread_id)[-1].id)
    threads.delete(ALICE, first.thread_id)
    assert here.store.purge_thread(first.thread_id)
    busy = here.send("Hello")
    waits = here.wait("Later", busy.thread_id, attachments=(waiting.media_id,))
    later = staging.clock() + timedelta(days=3)
    assert [one.media_id for one in attachments.collectable_attachments(ALICE, older_than=later)] == [loose.media_id]
    out = StringIO()
    call_command("agent_sweep_attachments", "--older-than", "1m", "--delete", stdout=out)
    assert out.getvalue() == "0 files that no message carries; 0 removed.\n"
    assert all(staging.resolve(ALICE, one.media_id) for one in (waiting, forked, loose))
    queue.remove(ALICE, waits.message_id)
    call_command("agent_sweep_attachments", "--older-than", "1m", stdout=StringIO())
    assert staging.resolve(ALICE, waiting.media_id)  # it was only listed
    call_command("agent_sweep_attachments", "--older-than", "1m", "--delete", stdout=StringIO())
    assert [bool(staging.resolve(ALICE, one.media_id)) for one in (waiting, forked, loose)] == [False, True, True]
