"""People by a name that people know (spec 08 §9): `AGENT["ACTOR_DIRECTORY"]`, else the site's users."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol, cast

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.db.models import Field

from agent.conf import agent_settings


class ActorDirectory(Protocol):
    def labels(self, refs: Collection[str]) -> Mapping[str, str]: ...


class UserDirectory:
    """Actors whose ref is the key of a user, by the user's full name or else its user name; in one query."""

    def labels(self, refs: Collection[str]) -> Mapping[str, str]:
        model = get_user_model()
        keys = {key: ref for ref in refs if (key := _key(model._meta.pk, ref)) is not None}
        users = model._default_manager.in_bulk(list(keys)) if keys else {}
        return {keys[key]: _name(user) for key, user in users.items()}


def labels(refs: Collection[str]) -> Mapping[str, str]:
    """The labels that are known; asked once a page."""
    directory = cast("ActorDirectory | None", agent_settings().actor_directory) or UserDirectory()
    return directory.labels(refs) if refs else {}


def _name(user: AbstractBaseUser) -> str:
    """A user model has a method for the user name; one for the full name only by custom."""
    full_name = getattr(user, "get_full_name", str)
    return full_name() or user.get_username()


def _key(field: Field[object, object], ref: str) -> object | None:
    try:
        key: object = field.to_python(ref)
        field.run_validators(key)
    except (ValidationError, OverflowError):
        return None
    return key if str(key) == ref else None
