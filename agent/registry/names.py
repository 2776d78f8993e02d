"""How agents, tools and personas are named."""

from __future__ import annotations

import re

NAME_RULE = "[a-z][a-z0-9_-]{0,63}"
_NAME = re.compile(NAME_RULE)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def is_name(name: object) -> bool:
    """Whether it may name an agent, a tool or a persona."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def snake_name(identifier: str) -> str:
    """`LookUpOrder` is look_up_order."""
    return _HUMP.sub("_", identifier).lower()


def human_name(name: str) -> str:
    """`look_up_order` is Look up order."""
    return name.replace("_", " ").replace("-", " ").strip().capitalize()
