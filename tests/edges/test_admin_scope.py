"""Who sees some tenants only (`CONSOLE_SCOPE`) sees no other one's rows in the plain admin either."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import models
from django.test import Client
from django.urls import reverse

import agent.admin
import governance.admin
from agent.models import (
    ActionProposal,
    IdempotencyKey,
    MemoryFact,
    Message,
    ModelPrice,
    PersonalConversation,
    PersonalEvent,
    PersonalMessage,
    QueuedMessage,
    Run,
    RunStep,
    StagedAttachment,
    StreamFrame,
    Thread,
    ThreadSummary,
    ToolCall,
    UsageEntry,
)
from governance.models import RunRollup, UsageRollup
from tests.edges.admin_rows import full_row

pytestmark = pytest.mark.django_db

SCREENS = {**agent.admin.SCREENS, **governance.admin.SCREENS}
OWN: dict[type[models.Model], dict[str, Any]] = {
    Thread: {},
    Run: {},
    ToolCall: {},
    UsageEntry: {},
    StagedAttachment: {},
    ActionProposal: {},
    UsageRollup: {},
    RunRollup: {},
    Message: {"tenant_ref": None},
    ThreadSummary: {"tenant_ref": None},
    QueuedMessage: {"tenant_ref": None},
    RunStep: {"tenant_ref": None},
    StreamFrame: {"tenant_ref": None, "run_id": "r-north"},
    IdempotencyKey: {"tenant_ref": None, "thread_id": "t-north"},
    MemoryFact: {"tenant_ref": None, "scope": "tenant:north"},
    PersonalConversation: {"tenant_ref": None, "thread_id": "t-north"},
    PersonalEvent: {"tenant_ref": None, "conversation_id": "c-north"},
    PersonalMessage: {"tenant_ref": None, "conversation_id": "c-north"},
}


def only_north(request: object) -> list[str]:
    return ["north"]


@pytest.fixture
def scoped(settings: Any) -> Client:
    settings.AGENT = {"CONSOLE_SCOPE": f"{__name__}.only_north"}
    client = Client()
    client.force_login(User.objects.create_superuser("north"))
    return client


def seen(client: Client, row: models.Model) -> tuple[bool, bool]:
    """Whether a row is in the list of its table, and whether it has a page."""
    name = f"admin:{row._meta.app_label}_{row._meta.model_name}"
    page = reverse(f"{name}_change", args=[row.pk])
    listed = page in client.get(reverse(f"{name}_changelist")).content.decode()
    return listed, client.get(page).status_code == 200


@pytest.mark.parametrize("model", [one for one in SCREENS if one is not ModelPrice], ids=lambda one: one.__name__)
def test_a_row_of_another_tenant_is_unknown(scoped: Client, model: type[models.Model]) -> None:
    row = full_row(model)
    row.save(force_insert=True)
    assert seen(scoped, row) == (False, False)


@pytest.mark.parametrize("model", OWN, ids=lambda one: one.__name__)
def test_a_row_of_ones_own_tenant_is_there(scoped: Client, model: type[models.Model]) -> None:
    full_row(Thread, 8_000, id="t-north", tenant_ref="north").save(force_insert=True)
    full_row(Run, 8_000, id="r-north", tenant_ref="north").save(force_insert=True)
    full_row(PersonalConversation, 8_000, id="c-north", thread_id="t-north").save(force_insert=True)
    row = full_row(model, **{name: value for name, value in ({"tenant_ref": "north"} | OWN[model]).items() if value})
    row.save(force_insert=True)
    assert seen(scoped, row) == (True, True)


def test_a_price_is_that_of_the_whole_site(scoped: Client) -> None:
    row = full_row(ModelPrice)
    row.save(force_insert=True)
    assert seen(scoped, row) == (True, True)


def test_a_run_of_another_tenant_is_not_stopped(scoped: Client) -> None:
    run = full_row(Run, status="queued")
    run.save(force_insert=True)
    answer = scoped.post(reverse("admin:agent_run_cancel", args=[run.pk]))
    assert answer.status_code == 302
    assert Run.objects.get(pk=run.pk).cancel_requested_at == run.cancel_requested_at  # type: ignore[attr-defined]
    assert Run.objects.get(pk=run.pk).status == "queued"
