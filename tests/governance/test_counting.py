"""B119: no list counts a table to its end, and what was not counted is said."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agent.models import UsageEntry
from tests.console.pages import text
from tests.governance.rows import NOON

DAYS = "fromDay=2026-06-15&toDay=2026-06-15"


@pytest.mark.django_db
def test_counts_end_at_ten_thousand_and_say_so() -> None:
    UsageEntry.objects.bulk_create(
        UsageEntry(
            thread_id="t",
            actor_ref="ana",
            model_id="m",
            purpose="chat",
            tokens_source="reported",
            input_tokens=1,
            output_tokens=1,
            created_at=NOON,
        )
        for _ in range(10_001)
    )
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    with CaptureQueriesContext(connection) as seen:
        told = client.get(f"/governance/api/usage-page?{DAYS}&limit=1").json()
        page = text(client, "/admin/governance/usage/", fromDay="2026-06-15", toDay="2026-06-15")
        plain = client.get("/admin/agent/usageentry/").content.decode()
    assert (told["total"], told["totalCapped"]) == (10_000, True)
    assert "more than 10,000" in page
    assert "the first 10000 of more" in plain
    counts = [each["sql"] for each in seen if "COUNT(" in each["sql"] and "agent_token_usage" in each["sql"]]
    assert counts
    assert all("LIMIT 10001" in sql for sql in counts), counts
