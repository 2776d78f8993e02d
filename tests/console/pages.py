"""What a page of the console says, without its markup."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from django.test import Client

TAG = re.compile(r"<[^>]+>")
PART = re.compile(r'(?s)<div class="gov">.*</div>\s*<br class="clear">')


def html(client: Client, url: str, *, status: int = 200, **query: Any) -> str:
    response = client.get(url, query)
    assert response.status_code == status, f"{url} answered {response.status_code}"
    return response.content.decode()


def text(client: Client, url: str, *, status: int = 200, **query: Any) -> str:
    """The words of the console on the page, one blank between them."""
    found = PART.search(html(client, url, status=status, **query))
    assert found, "no page of the console"
    return " ".join(unescape(TAG.sub(" ", found[0])).split())


def links(page: str) -> list[str]:
    return [unescape(url) for url in re.findall(r'href="([^"]+)"', page)]
