"""What a file is, by its bytes; and the name it may keep."""

from __future__ import annotations

import pytest

from agent.domain.media import safe_name, type_of

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


@pytest.mark.parametrize(
    ("head", "name", "kind"),
    [
        (PNG, "x.txt", "image/png"),
        (b"\xff\xd8\xff\xe0", "x", "image/jpeg"),
        (b"GIF89a..", "x", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "x", "image/webp"),
        (b"....\x00\x00\x00\x00WEBPVP8 ", "x.webp", None),
        (b"%PDF-1.7\n\xe2\xe3", "x", "application/pdf"),
        (b"a,b\n1,2\n", "Table.CSV", "text/csv"),
        (b"a,b\n1,2\n", "x.png", "text/plain"),
        ("wörld".encode()[:2], "cut.txt", "text/plain"),  # in the middle of a sign
        ("wörld".encode("latin-1"), "x.txt", None),
        (b"MZ\x00\x01", "x.txt", None),
        (b"<!DOCTYPE html><script>", "x.png", "text/html"),
        (b"\xef\xbb\xbf \n<HTML>", "x.txt", "text/html"),
        (b'<?xml version="1.0"?><svg onload="x()">', "x.png", "image/svg+xml"),
        (b"<svg/>", "x.csv", "image/svg+xml"),
    ],
)
def test_bytes_say_what_a_file_is(head: bytes, name: str, kind: str | None) -> None:
    assert type_of(head, name) == kind


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        (r"C:\Temp\lamp.png", "lamp.png"),
        ("a\u202egpj.exe", "agpj.exe"),
        ("a\x00b\n.txt", "a\ufffdb.txt"),
        ("", "file"),
        ("..", "file"),
        ("/", "file"),
        ("x" * 400 + ".png", "x" * 251 + ".png"),
        ("Ünïcode 名.pdf", "Ünïcode 名.pdf"),
    ],
)
def test_a_name_hides_nothing(given: str, kept: str) -> None:
    assert safe_name(given) == kept
