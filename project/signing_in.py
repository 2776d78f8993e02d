"""Who may sign in to this site."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser, User

from project.accounts import ACCOUNTS

DEMO = {(account.name, account.email) for account in ACCOUNTS}


class SiteBackend(ModelBackend):
    """Django's own; outside DEBUG an account of the demo, whose password is public, opens nothing, nor its session."""

    def user_can_authenticate(self, user: User | AnonymousUser | None) -> bool:
        if isinstance(user, User) and not settings.DEBUG and (user.username, user.email) in DEMO:
            return False
        return super().user_can_authenticate(user)
