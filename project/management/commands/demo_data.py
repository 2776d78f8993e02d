"""Fill the demo: accounts, and a shop with orders. What is there already stays as it is."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission, User
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from project.accounts import ACCOUNTS, PASSWORD, Account
from project.shop import sample


class Command(BaseCommand):
    help = "Fill the demo with accounts and a shop; running it again keeps the data."
    requires_system_checks = ()  # they load the whole site, and the server makes them anyway

    def handle(self, *args: object, **options: object) -> None:
        if not settings.DEBUG:
            raise CommandError("The demo's accounts have a public password: demo_data runs with DEBUG=1 only.")
        with transaction.atomic():
            users = {account.name: _user(account) for account in ACCOUNTS}
            made = sample.fill(timezone.now().date(), alice=users["alice"])
        if made:
            self.stdout.write(f"Demo data: {len(users)} accounts, {made} orders.")


def _user(account: Account) -> User:
    """The account; its password is set once, for hashing it takes half a second."""
    first, _, last = account.full_name.partition(" ")
    user, made = get_user_model().objects.get_or_create(
        username=account.name,
        defaults={
            "first_name": first,
            "last_name": last,
            "email": account.email,
            "is_staff": account.staff,
            "is_superuser": account.superuser,
        },
    )
    if made:
        user.set_password(PASSWORD)
        user.save(update_fields=["password"])
    user.groups.add(*(Group.objects.get_or_create(name=name)[0] for name in account.groups))
    user.user_permissions.add(*_permissions(account.permissions))
    return user


def _permissions(names: tuple[str, ...]) -> list[Permission]:
    wanted = Q(pk__in=[])
    for name in names:
        app, _, codename = name.partition(".")
        wanted |= Q(content_type__app_label=app, codename=codename)
    return list(Permission.objects.filter(wanted))
