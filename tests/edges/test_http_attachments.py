"""Files over HTTP: uploaded at once or in parts, sent by id, read back in a form in which nothing runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, override_settings

from agent.flows import dispatch
from agent.models import Message, StagedAttachment
from tests.edges.conftest import MakeDesk, Person, body_of

pytestmark = pytest.mark.django_db(transaction=True)

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(56))
MOST = 64
UPLOADS = "/agent/attachments/uploads"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    storages = {
        "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
        "agent_attachments": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": str(tmp_path)},
        },
    }
    with override_settings(STORAGES=storages):
        yield tmp_path


@pytest.fixture
def taking(make_desk: MakeDesk) -> None:
    types = ["image/png", "text/plain", "text/html", "image/svg+xml", "application/pdf"]
    make_desk(["Seen.", "Seen again."], ATTACHMENTS={"MAX_BYTES": MOST, "TYPES": types})


def upload(person: Person, content: bytes = PNG, name: str = "lamp.png") -> Any:
    return person.client.post("/agent/attachments", {"file": SimpleUploadedFile(name, content, "image/png")})


def put(person: Person, media_id: str, content: bytes, span: str | None = None) -> Any:
    headers = {"Content-Range": span} if span else {}
    return person.client.put(f"{UPLOADS}/{media_id}", content, content_type="application/octet-stream", headers=headers)


def begin(person: Person, size: int, kind: str = "image/png") -> str:
    answer = person.post(UPLOADS, {"name": "lamp.png", "contentType": kind, "size": size})
    assert answer.status_code == 201, answer.content
    told = answer.json()
    assert told == {"mediaId": told["mediaId"], "uploadUrl": f"{UPLOADS}/{told['mediaId']}", "method": "PUT"}
    return str(told["mediaId"])


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_a_file_is_uploaded_sent_and_read_again(taking: None, owner: Person) -> None:
    answer = upload(owner, name="../a\u202egnp.png")
    assert answer.status_code == 201
    file = answer.json()
    assert (file["contentType"], file["name"]) == ("image/png", "agnp.png")
    assert set(file) == {"mediaId", "url", "contentType", "name"}
    sent = owner.post("/agent/chat", {"message": "", "attachments": [{"mediaId": file["mediaId"]}]})
    assert sent.status_code == 200
    body_of(sent)
    dispatch.wait(30)
    thread = owner.get(f"/agent/threads/{sent['X-Agent-Thread-Id']}").json()
    (shown,) = thread["messages"][0]["attachments"]
    assert {**shown, "url": ""} == {**file, "url": ""}
    read = owner.get(shown["url"])
    assert (read.status_code, body_of(read)) == (200, PNG)
    (listed,) = owner.get("/agent/attachments").json()
    assert (listed["mediaId"], listed["size"], "url" in listed) == (file["mediaId"], len(PNG), False)
    assert code(owner.delete(f"{UPLOADS}/{file['mediaId']}")) == (409, "conflict")


def test_nothing_of_an_upload_runs_on_the_site(taking: None, owner: Person) -> None:
    for content, name, inline in (
        (PNG, "a.png", True),
        (b"<!doctype html><script>", "a.png", False),
        (b"<svg onload='x()'/>", "a.svg", False),
        (b"plain", "a.html", False),
    ):
        answer = owner.get(upload(owner, content, name).json()["url"])
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["Content-Security-Policy"] == "sandbox; default-src 'none'"
        assert answer["Content-Disposition"].startswith("inline" if inline else "attachment")
        answer.close()


def test_others_know_nothing_of_it(taking: None, owner: Person, stranger: Person, operator: Person) -> None:
    file = upload(owner).json()
    media_id, url = file["mediaId"], file["url"]
    pending = begin(owner, 3)
    for other in (stranger, operator):
        refused = other.post("/agent/chat", {"message": "x", "attachments": [{"mediaId": media_id}]})
        assert code(refused) == (403, "attachment_forbidden")
        assert other.get("/agent/attachments").json() == []
        for answer in (
            other.get(url),
            other.delete(f"{UPLOADS}/{media_id}"),
            put(other, pending, b"abc"),
            other.post(f"{UPLOADS}/{pending}/complete"),
            other.get("/agent/attachments/unknown/content?token=x"),
        ):
            assert code(answer) == (404, "not_found")
    anonymous = Client()
    assert [anonymous.get(path).status_code for path in (url, "/agent/attachments")] == [401, 401]
    for wrong in (url.partition("?")[0], f"{url}x"):
        assert code(owner.get(wrong)) == (404, "not_found")
    assert Message.objects.count() == 0


@pytest.mark.parametrize(
    ("content", "name", "answer"),
    [
        (PNG + b"x", "a.png", (413, "too_large")),
        (b"x" * 5_000_000, "a.txt", (413, "too_large")),
        (b"MZ\x00\x01", "a.png", (415, "unsupported_type")),
        (b"", "a.png", (400, "invalid_body")),
    ],
)
def test_what_is_not_taken_leaves_nothing(
    taking: None, owner: Person, folder: Path, content: bytes, name: str, answer: tuple[int, str]
) -> None:
    assert code(upload(owner, content, name)) == answer
    assert StagedAttachment.objects.count() == 0
    assert [path for path in folder.rglob("*") if path.is_file()] == []


def test_a_form_without_its_one_file_is_refused(taking: None, owner: Person) -> None:
    two = {"file": [BytesIO(PNG), BytesIO(PNG)]}
    for data, status in (({}, 400), ({"file": "text"}, 400), ({"other": BytesIO(PNG)}, 400), (two, 400)):
        assert owner.client.post("/agent/attachments", data).status_code == status
    assert owner.post("/agent/attachments", {"file": "x"}).status_code == 415
    broken = owner.client.generic("POST", "/agent/attachments", b"--x", content_type="multipart/form-data")
    assert broken.status_code == 400


def test_an_upload_goes_on_where_it_broke(taking: None, owner: Person) -> None:
    media_id, size = begin(owner, len(PNG)), len(PNG)
    assert put(owner, media_id, PNG[:10], f"bytes 0-9/{size}")["Upload-Offset"] == "10"
    assert put(owner, media_id, b"", f"bytes */{size}")["Upload-Offset"] == "10"
    assert code(owner.post(f"{UPLOADS}/{media_id}/complete")) == (409, "bytes_missing")
    for span, content in (
        (f"bytes 0-9/{size}", PNG[:10]),  # not where it is
        (f"bytes 10-19/{size + 1}", PNG[10:20]),  # another whole
        (f"bytes 10-19/{size}", PNG[10:15]),  # fewer than it says
        (f"bytes 10-19/{size}", PNG[10:25]),  # more than it says
    ):
        assert code(put(owner, media_id, content, span)) == (422, "size_mismatch")
    for span in ("bytes 9-1/64", "bytes 10-64/64", "10-20", "bytes x"):
        assert code(put(owner, media_id, b"x", span)) == (400, "invalid_body")
    assert put(owner, media_id, PNG[10:], f"bytes 10-{size - 1}/*").status_code == 204
    done = owner.post(f"{UPLOADS}/{media_id}/complete")
    assert (done.status_code, done.json()["contentType"]) == (200, "image/png")
    assert body_of(owner.get(done.json()["url"])) == PNG
    assert put(owner, media_id, b"").status_code == 404
    assert owner.delete(f"{UPLOADS}/{media_id}").status_code == 204
    assert owner.delete(f"{UPLOADS}/{media_id}").status_code == 404


def test_an_upload_that_is_not_what_it_said_is_forgotten(taking: None, owner: Person) -> None:
    media_id = begin(owner, 4)
    put(owner, media_id, b"MZ\x00\x01")
    assert code(owner.post(f"{UPLOADS}/{media_id}/complete")) == (415, "unsupported_type")
    assert StagedAttachment.objects.count() == 0
    for body, answer in (
        ({"name": "a", "contentType": "video/mp4", "size": 1}, (415, "unsupported_type")),
        ({"name": "a", "contentType": "image/png", "size": MOST + 1}, (413, "too_large")),
        ({"name": "a", "contentType": "image/png", "size": 0}, (400, "invalid_body")),
        ({"name": "a", "contentType": "image/png", "size": "1"}, (400, "invalid_body")),
        ({"name": "", "contentType": "image/png", "size": 1}, (400, "invalid_body")),
    ):
        assert code(owner.post(UPLOADS, body)) == answer


@pytest.mark.parametrize(
    ("asked", "status", "part", "span"),
    [
        ("bytes=0-9", 206, PNG[:10], "bytes 0-9/64"),
        ("bytes=60-", 206, PNG[60:], "bytes 60-63/64"),
        ("bytes=-4", 206, PNG[-4:], "bytes 60-63/64"),
        ("bytes=60-999", 206, PNG[60:], "bytes 60-63/64"),
        ("bytes=64-", 200, PNG, None),
        ("bytes=9-1", 200, PNG, None),
        ("bytes=-0", 200, PNG, None),
        ("bytes=0-1,4-5", 200, PNG, None),
        ("lamps=1-2", 200, PNG, None),
    ],
)
def test_one_range_is_answered(
    taking: None, owner: Person, asked: str, status: int, part: bytes, span: str | None
) -> None:
    answer = owner.get(upload(owner).json()["url"], Range=asked)
    assert (answer.status_code, body_of(answer), answer.get("Content-Range")) == (status, part, span)


def test_a_waiting_message_takes_and_drops_files(make_desk: MakeDesk, owner: Person, stranger: Person) -> None:
    make_desk([], ATTACHMENTS={"MAX_BYTES": MOST}, RUNNER="tests.edges.test_http_attachments.Nobody")
    file, theirs = upload(owner).json(), upload(stranger).json()
    first = owner.post("/agent/chat", {"message": "Hello", "mode": "auto"})
    thread = first["X-Agent-Thread-Id"]
    body = {"message": "", "threadId": thread, "attachments": [{"mediaId": file["mediaId"]}]}
    queued = owner.post("/agent/chat", body).json()
    assert queued["queue"]["items"][0]["attachments"][0]["mediaId"] == file["mediaId"]
    path = f"/agent/queue/{queued['messageId']}"
    refused = owner.patch(path, {"attachments": [{"mediaId": theirs["mediaId"]}]})
    assert code(refused) == (403, "attachment_forbidden")
    assert code(owner.patch(path, {"attachments": None})) == (400, "empty_message")
    state = owner.patch(path, {"attachments": None, "message": "Look"}).json()
    assert "attachments" not in state["items"][0]


def test_where_nothing_is_taken_every_door_says_so(make_desk: MakeDesk, owner: Person) -> None:
    make_desk([])
    assert owner.get("/agent/config").json()["attachments"] is None
    for answer in (
        upload(owner),
        owner.get("/agent/attachments"),
        owner.post(UPLOADS, {"name": "a", "contentType": "image/png", "size": 1}),
        put(owner, "a", b"x"),
        owner.post(f"{UPLOADS}/a/complete"),
        owner.delete(f"{UPLOADS}/a"),
        owner.get("/agent/attachments/a/content?token=x"),
        owner.post("/agent/chat", {"message": "x", "attachments": [{"mediaId": "a"}]}),
    ):
        assert code(answer) == (501, "not_supported")


def test_the_configuration_says_what_is_taken(taking: None, owner: Person) -> None:
    told = owner.get("/agent/config").json()["attachments"]
    assert (told["maxBytes"], told["resumable"], "image/png" in told["types"]) == (MOST, True, True)


def test_a_foreign_page_uploads_nothing(taking: None, owner: Person) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(owner.user)
    refused = browser.post("/agent/attachments", {"file": SimpleUploadedFile("a.png", PNG)})
    assert (refused.status_code, json.loads(refused.content)["code"]) == (403, "forbidden")
