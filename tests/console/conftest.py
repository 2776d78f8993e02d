"""The console as its people open it: signed in through the client, in the default admin site and in another one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

SignIn = Callable[..., Client]
HERE = Path(__file__).resolve().parent


@pytest.fixture
def staff() -> SignIn:
    """Signs in a member of staff with these permissions, `app.codename` each, and no others."""

    def sign_in(*permissions: str) -> Client:
        user = User.objects.create_user(f"staff{User.objects.count()}", is_staff=True)
        for name in permissions:
            app, _, codename = name.partition(".")
            user.user_permissions.add(Permission.objects.get(content_type__app_label=app, codename=codename))
        client = Client()
        client.force_login(user)
        return client

    return sign_in


@pytest.fixture
def finance(staff: SignIn) -> Client:
    return staff("governance.view_spend", "governance.export_governance")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Pages are shown on one database; what they ask of it is asked on all of them by the tests of the queries.

    The inbox changes rows, so it is opened on each.
    """
    for item in items:
        if item.path.parent == HERE and item.path.name not in {"test_approvals.py", "test_digest.py"}:
            item.add_marker(pytest.mark.once)
