"""Where a declaration stands, and how its options are read: from the decorator, else from class attributes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.apps import apps


@dataclass(frozen=True, slots=True)
class Origin:
    """The place of a declaration; a module that is imported again declares the same place anew."""

    module: str
    qualname: str
    line: int = 0

    @classmethod
    def of(cls, target: Any) -> Origin:  # noqa: ANN401 - a function or a class
        code = getattr(inspect.unwrap(target), "__code__", None)
        line = code.co_firstlineno if code else getattr(target, "__firstlineno__", 0)
        return cls(getattr(target, "__module__", "?"), getattr(target, "__qualname__", repr(target)), line)

    @property
    def is_local(self) -> bool:
        """Made by a function, so one place may make many."""
        return "<locals>" in self.qualname

    @property
    def app(self) -> str:
        """The label of the installed app that holds it, else its top package."""
        return _app_of(self.module)

    def __str__(self) -> str:
        return f"{self.module}.{self.qualname}"


@lru_cache(maxsize=1024)
def _app_of(module: str) -> str:
    config = apps.get_containing_app_config(module)
    return config.label if config else module.partition(".")[0]


class Options:
    """An option is the decorator's argument, else the declared object's attribute, else its default."""

    def __init__(self, declared: object, given: Mapping[str, Any]) -> None:
        self._declared, self._given = declared, given

    def __call__(self, name: str, default: object = None) -> Any:  # noqa: ANN401 - an option is any value
        return self._given[name] if name in self._given else getattr(self._declared, name, default)


def refuse_unknown(decorator: str, given: Iterable[str], known: Iterable[str]) -> None:
    """A misspelt option is an error where it is written."""
    for name in set(given) - set(known):
        raise TypeError(f"{decorator}() got an unexpected option {name!r}; there are {', '.join(sorted(known))}")


def make(declared: type) -> tuple[object, tuple[str, ...]]:
    """One instance serves every run; the flaws say why there is none."""
    try:
        return declared(), ()
    except TypeError as error:
        return None, (f"it must be made without arguments ({error})",)


def texts(value: Iterable[str] | None) -> tuple[str, ...] | None:
    """A list of names as it is declared; one lone text is meant as a list of it."""
    if value is None:
        return None
    return (value,) if isinstance(value, str) else tuple(value)


def docstring(target: object) -> str:
    """The declared object's own docstring, not one that it inherits."""
    own = getattr(target, "__doc__", None)
    return inspect.cleandoc(own) if isinstance(own, str) else ""


def is_async(call: Callable[..., Any] | None) -> bool:
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004
