"""Both staging stores keep the published contract, and stores that break a promise of it fail its case."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import IO

import pytest
from django.core.files.storage import FileSystemStorage
from django.test import override_settings

from agent.domain.actor import Actor
from agent.domain.media import Attachment, NewFile
from agent.models import StagedAttachment
from agent.store.staging import DjangoStagingStore
from agent.testing import InMemoryStagingStore
from agent.testing.contracts import STAGING_CONTRACT, ContractMismatch, StagingCase, StagingSubject
from agent.testing.contracts.staging import ANA, TEXT


@pytest.fixture(autouse=True)
def mounted() -> Iterator[None]:
    with override_settings(AGENT={"ATTACHMENTS": {}}):
        yield


@pytest.fixture
def folder(tmp_path: Path) -> FileSystemStorage:
    return FileSystemStorage(tmp_path)


@pytest.mark.once
@pytest.mark.parametrize("case", STAGING_CONTRACT, ids=lambda case: case.name)
def test_memory_keeps(case: StagingCase) -> None:
    case.run(StagingSubject(InMemoryStagingStore()))


@pytest.mark.django_db
@pytest.mark.parametrize("case", STAGING_CONTRACT, ids=lambda case: case.name)
def test_django_storage_keeps(case: StagingCase, folder: FileSystemStorage) -> None:
    case.run(StagingSubject(DjangoStagingStore(storage=folder)))


class ShowsEverybody(InMemoryStagingStore):
    def resolve(self, actor: Actor, media_id: str) -> Attachment | None:
        owners = (Actor(file.owner.ref, tenant_ref=file.owner.tenant_ref) for file in self._files.values())
        return next((found for one in owners if (found := super(ShowsEverybody, self).resolve(one, media_id))), None)


class DeletesNothing(InMemoryStagingStore):
    def delete(self, actor: Actor, media_id: str) -> bool:
        return self.resolve(actor, media_id) is not None


class ListsByAgeOfNone(InMemoryStagingStore):
    def list(
        self, actor: Actor, *, staged_before: datetime | None = None, limit: int | None = None
    ) -> tuple[Attachment, ...]:
        return tuple(super().list(actor, limit=limit))


class CutsBytes(InMemoryStagingStore):
    def stage(self, actor: Actor, file: NewFile) -> Attachment:
        file.content.read(1)
        return super().stage(actor, file)


class TakesPartsAnywhere(InMemoryStagingStore):
    def append(self, actor: Actor, media_id: str, part: IO[bytes], *, offset: int) -> int:
        return super().append(actor, media_id, part, offset=self.received(actor, media_id)[0])


@pytest.mark.once
@pytest.mark.parametrize(
    ("broken", "case"),
    [
        (ShowsEverybody, "01"),
        (DeletesNothing, "02"),
        (CutsBytes, "04"),
        (ListsByAgeOfNone, "05"),
        (TakesPartsAnywhere, "06"),
    ],
)
def test_a_broken_promise_fails_its_case(broken: Callable[[], InMemoryStagingStore], case: str) -> None:
    (proof,) = [one for one in STAGING_CONTRACT if one.name.startswith(case)]
    with pytest.raises(ContractMismatch):
        proof.run(StagingSubject(broken()))


@pytest.mark.django_db
def test_a_url_is_for_one_person_one_file_and_one_hour(folder: FileSystemStorage) -> None:
    subject = StagingSubject(DjangoStagingStore(storage=folder))
    first, second = subject.stage(), subject.stage()
    token = first.url.partition("token=")[2]
    store: DjangoStagingStore = subject.store
    assert store.allows(ANA, first.media_id, token)
    for actor, media_id, given in (
        (Actor("bo"), first.media_id, token),
        (Actor("ana", tenant_ref="x"), first.media_id, token),
        (ANA, second.media_id, token),
        (ANA, first.media_id, f"{token}x"),
        (ANA, first.media_id, ""),
    ):
        assert not store.allows(actor, media_id, given)
    subject.clock.advance(3601)
    assert not store.allows(ANA, first.media_id, token)


@pytest.mark.django_db
def test_no_bytes_stay_behind(folder: FileSystemStorage) -> None:
    subject = StagingSubject(DjangoStagingStore(storage=folder))
    store: DjangoStagingStore = subject.store
    whole = subject.stage()
    begun = store.begin(ANA, name="a.txt", content_type="text/plain", size=2)
    for offset, sign in enumerate((b"a", b"b")):
        store.append(ANA, begun.media_id, BytesIO(sign), offset=offset)
    assert len(folder.listdir("agent_attachments")[1]) == 2
    names = StagedAttachment.objects.values_list("file", flat=True)
    assert not any("lamps" in name or "." in name for name in names)  # nothing to guess, nothing to run
    store.delete(ANA, whole.media_id)
    store.delete(ANA, begun.media_id)
    assert folder.listdir("agent_attachments")[1] == []


@pytest.mark.django_db
def test_two_parts_at_one_place_are_one_part(folder: FileSystemStorage) -> None:
    store = DjangoStagingStore(storage=folder)
    begun = store.begin(ANA, name="a.txt", content_type="text/plain", size=len(TEXT))
    seen = StagedAttachment.objects.get(pk=begun.media_id)
    assert store.append(ANA, begun.media_id, BytesIO(TEXT), offset=0) == len(TEXT)
    assert not StagedAttachment.objects.of(ANA).grow(seen, file="another", size=3)
    assert store.complete(ANA, begun.media_id).size == len(TEXT)
