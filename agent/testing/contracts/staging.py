"""STAGING_CONTRACT: what every staging store keeps (spec 11 §9), and ATTACHMENT_REFERENCE_CONTRACT of the store.

    @pytest.mark.parametrize("case", STAGING_CONTRACT, ids=lambda case: case.name)
    def test_contract(case): case.run(StagingSubject(MyStagingStore()))

Cases about an optional part run where the store has it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from io import BytesIO
from typing import Any

from agent.domain.actor import Actor
from agent.domain.commands import AppendMessage
from agent.domain.media import Attachment, NewFile
from agent.domain.queue import NewQueuedMessage
from agent.domain.snapshots import JsonList
from agent.errors import AgentError
from agent.testing.contracts.base import Case, ContractMismatch, expect, same
from agent.testing.contracts.rows import new_thread
from agent.testing.contracts.store import SettableClock, StoreCase, StoreSubject, case

ANA, ANA_ELSEWHERE, BO = Actor("ana"), Actor("ana", tenant_ref="x"), Actor("bo")
TEXT = b"Three lamps.\n"
PARTS = ("append", "begin", "complete", "received")


@dataclass(slots=True)
class StagingSubject:
    """An empty staging store under test; its `clock` is set where it has one."""

    store: Any
    clock: SettableClock = field(default_factory=SettableClock)

    def __post_init__(self) -> None:
        self.store.clock = self.clock

    def stage(self, actor: Actor = ANA, content: bytes = TEXT, name: str = "lamps.txt") -> Attachment:
        file = NewFile(name=name, content_type="text/plain", size=len(content), content=BytesIO(content))
        staged: Attachment = self.store.stage(actor, file)
        return staged


StagingCase = Case[StagingSubject]
STAGING_CONTRACT: list[StagingCase] = []
ATTACHMENT_REFERENCE_CONTRACT: list[StoreCase] = []


def _promise(name: str, *needs: str) -> Callable[[Callable[[StagingSubject], None]], None]:
    def add(proof: Callable[[StagingSubject], None]) -> None:
        def run(subject: StagingSubject) -> None:
            if all(hasattr(subject.store, need) for need in needs):
                proof(subject)

        STAGING_CONTRACT.append(Case(name, run))

    return add


@_promise("01 a staged file is its owner's, and nobody else's")
def _owned(subject: StagingSubject) -> None:
    staged = subject.stage()
    found = subject.store.resolve(ANA, staged.media_id)
    told = found and (found.media_id, found.name, found.content_type)
    same(told, (staged.media_id, "lamps.txt", "text/plain"), "own")
    expect(found is not None and found.url, "a file has a url")
    for other in (BO, ANA_ELSEWHERE):
        same(subject.store.resolve(other, staged.media_id), None, "another's")
        same(subject.store.delete(other, staged.media_id), False, "another's delete")
    expect(subject.store.resolve(ANA, staged.media_id), "what others tried changed nothing")
    same(subject.store.resolve(ANA, "nobody knows this"), None, "an unknown id")


@_promise("02 a deleted file is gone")
def _deleted(subject: StagingSubject) -> None:
    staged = subject.stage()
    same([subject.store.delete(ANA, staged.media_id) for _ in range(2)], [True, False], "deletes")
    same(subject.store.resolve(ANA, staged.media_id), None, "resolve")


@_promise("03 two files of one name are two files")
def _twins(subject: StagingSubject) -> None:
    first, second = subject.stage(), subject.stage()
    expect(first.media_id != second.media_id, "each has its own id")


@_promise("04 the bytes are the same, for the owner alone", "open")
def _bytes(subject: StagingSubject) -> None:
    content = bytes(range(256)) * 1000
    staged = subject.stage(content=content)
    with subject.store.open(ANA, staged.media_id) as opened:
        expect(opened.read() == content, "the bytes that come back are those that went in")
    same([subject.store.open(other, staged.media_id) for other in (BO, ANA_ELSEWHERE)], [None, None], "another's")


@_promise("05 a list holds the owner's files, the newest first", "list")
def _listed(subject: StagingSubject) -> None:
    ids = []
    for _ in range(3):
        ids.append(subject.stage().media_id)
        subject.clock.advance(1)
    subject.stage(BO)
    same([one.media_id for one in subject.store.list(ANA)], ids[::-1], "all")
    same([one.media_id for one in subject.store.list(ANA, limit=2)], ids[:0:-1], "a limit")
    before = subject.clock.now - timedelta(seconds=2)
    same([one.media_id for one in subject.store.list(ANA, staged_before=before)], ids[:1], "older ones")
    expect(all(one.staged_at is not None for one in subject.store.list(ANA)), "each says since when")


@_promise("06 an upload in parts is the whole, and is nothing before", "list", "open", *PARTS)
def _parts(subject: StagingSubject) -> None:
    store = subject.store
    begun = store.begin(ANA, name="lamps.txt", content_type="text/plain", size=len(TEXT))
    same(store.append(ANA, begun.media_id, BytesIO(TEXT[:5]), offset=0), 5, "the first part")
    same((store.resolve(ANA, begun.media_id), store.list(ANA)), (None, []), "unfinished")
    same(_refused(partial(store.complete, ANA, begun.media_id)), "bytes_missing", "too early")
    for offset in (0, 4, 6):
        told = _refused(partial(store.append, ANA, begun.media_id, BytesIO(b"x"), offset=offset))
        same(told, "size_mismatch", "not behind the others")
    same(_refused(partial(store.append, ANA, begun.media_id, BytesIO(TEXT), offset=5)), "size_mismatch", "too many")
    same(store.received(ANA, begun.media_id), (5, len(TEXT)), "what was refused left nothing")
    store.append(ANA, begun.media_id, BytesIO(TEXT[5:]), offset=5)
    same([store.complete(ANA, begun.media_id).media_id for _ in range(2)], [begun.media_id] * 2, "twice")
    with store.open(ANA, begun.media_id) as opened:
        expect(opened.read() == TEXT, "the whole")


@_promise("07 another's upload is as unknown as none", *PARTS)
def _uploads(subject: StagingSubject) -> None:
    store = subject.store
    begun = store.begin(ANA, name="a", content_type="text/plain", size=1)
    for actor, media_id in ((BO, begun.media_id), (ANA_ELSEWHERE, begun.media_id), (ANA, "none")):
        calls = [
            partial(store.append, actor, media_id, BytesIO(b"x"), offset=0),
            partial(store.received, actor, media_id),
            partial(store.complete, actor, media_id),
        ]
        same([_refused(call) for call in calls], ["not_found"] * 3, "unknown")


@_promise("08 an upload that never ended is old like any file", "list", "owners", *PARTS)
def _abandoned(subject: StagingSubject) -> None:
    begun = subject.store.begin(ANA, name="a", content_type="text/plain", size=1)
    later = subject.clock.advance(10)
    same([one.media_id for one in subject.store.list(ANA, staged_before=later)], [begun.media_id], "listed")
    same([(one.ref, one.tenant_ref) for one in subject.store.owners(staged_before=later)], [("ana", None)], "owners")
    same(subject.store.delete(ANA, begun.media_id), True, "deleted")


def _refused(call: Callable[[], object]) -> str:
    try:
        call()
    except AgentError as error:
        return error.code
    raise ContractMismatch("it was taken")


# ---- ATTACHMENT_REFERENCE_CONTRACT (spec 02 §5.9) -------------------------------------------------------------------


def _carrying(*ids: str) -> JsonList:
    return [{"mediaId": one, "url": "/m", "contentType": "text/plain", "name": "a"} for one in ids]


@case(ATTACHMENT_REFERENCE_CONTRACT, "01 messages and waiting messages count, in asked order, each once")
def _count(subject: StoreSubject) -> None:
    store = subject.store
    thread = store.create_thread(actor=ANA)
    for _ in range(2):
        store.append_message(AppendMessage(thread_id=thread.id, role="user", content="", attachments=_carrying("b")))
    store.enqueue_message(NewQueuedMessage(thread_id=thread.id, actor=ANA, content="", attachments=_carrying("a", "c")))
    same(store.referenced_media_ids("ana", ["c", "x", "b", "a", "b"]), ["c", "b", "a"], "referenced")
    same(store.referenced_media_ids("ana", []), [], "nothing asked")


@case(ATTACHMENT_REFERENCE_CONTRACT, "02 another actor's do not count")
def _others(subject: StoreSubject) -> None:
    store = subject.store
    thread = store.create_thread(actor=BO)
    store.append_message(AppendMessage(thread_id=thread.id, role="user", content="", attachments=_carrying("a")))
    same(store.referenced_media_ids("ana", ["a"]), [], "another's")


@case(ATTACHMENT_REFERENCE_CONTRACT, "03 deleted threads count, and so do forks")
def _survivors(subject: StoreSubject) -> None:
    store = subject.store
    thread = store.create_thread(actor=ANA)
    said = store.append_message(AppendMessage(thread_id=thread.id, role="user", content="", attachments=_carrying("a")))
    store.fork_thread(thread.id, said.id)
    store.truncate_from(thread.id, said.id)
    same(store.referenced_media_ids("ana", ["a"]), ["a"], "the fork")
    gone = store.create_thread(actor=ANA)
    store.append_message(AppendMessage(thread_id=gone.id, role="user", content="", attachments=_carrying("b")))
    store.soft_delete_thread(gone.id)
    same(store.referenced_media_ids("ana", ["b"]), ["b"], "the deleted thread")


@case(ATTACHMENT_REFERENCE_CONTRACT, "04 truncation frees")
def _freed(subject: StoreSubject) -> None:
    store = subject.store
    thread_id = new_thread(store)
    said = store.append_message(AppendMessage(thread_id=thread_id, role="user", content="", attachments=_carrying("a")))
    owner = store.thread_scope(thread_id)
    ref = owner.owner.ref if owner else ""
    same(store.referenced_media_ids(ref, ["a"]), ["a"], "before")
    store.truncate_from(thread_id, said.id)
    same(store.referenced_media_ids(ref, ["a"]), [], "after")
