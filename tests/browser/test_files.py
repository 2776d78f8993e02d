"""Files of a message as somebody sends them: chosen, pasted, removed, seen again after a reload."""

from __future__ import annotations

import pytest
from playwright.sync_api import FilePayload, expect

from tests.browser.chat import Chat
from tests.browser.test_access import PHONE, overflow, serious

pytestmark = pytest.mark.xdist_group("browser")

TEXT: FilePayload = {"name": "lamps.txt", "mimeType": "text/plain", "buffer": b"Three lamps.\n"}
OTHER: FilePayload = {"name": "wrong.png", "mimeType": "image/png", "buffer": b"<svg onload='x()'/>"}
PASTE = """box => {
  const data = new DataTransfer();
  data.items.add(new File(["a,b\\n"], "table.csv", { type: "text/csv" }));
  box.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
}"""


def test_files_are_attached_sent_and_still_there_after_a_reload(chat: Chat) -> None:
    page = chat.page
    attached = page.locator("[data-files] .agent-file")
    page.locator("[data-file-input]").set_input_files([TEXT])
    expect(attached).to_have_text(["lamps.txt×"])
    chat.box.evaluate(PASTE)
    expect(attached).to_have_count(2)
    page.get_by_role("button", name="Remove lamps.txt").click()
    expect(attached).to_have_text(["table.csv×"])
    page.locator("[data-file-input]").set_input_files([OTHER])
    expect(chat.notice).to_contain_text("This kind of file is not taken here.")
    expect(attached).to_have_count(1)
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.emulate_media(color_scheme="dark")
    assert (serious(page), overflow(page)) == ([], 0)
    chat.ask("What is this?")
    expect(attached).to_have_count(0)
    expect(chat.last_text).to_contain_text("table.csv (text/csv, 4 bytes)")
    page.reload()
    link = chat.own.last.get_by_role("link", name="table.csv")
    expect(link).to_be_visible()
    with page.expect_download() as download:
        link.click()
    assert download.value.suggested_filename == "table.csv"
