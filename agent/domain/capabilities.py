"""What a client renders, and the words that stand for the components that it does not (spec 11 §7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

WORDS = "text"  # the component that is only words, which every client shows


def words_for(components: Iterable[Mapping[str, Any]], capabilities: Mapping[str, Any] | None) -> str:
    """The fallback texts of what the client has not said to render in exactly this version.

    A client that has said nothing is given the components alone, each with its words.
    """
    if capabilities is None:
        return ""
    rendered = {(each["name"], each["version"]) for each in capabilities["components"]}
    return "\n\n".join(each["fallbackText"] for each in components if _needs_words(each, rendered))


def _needs_words(component: Mapping[str, Any], rendered: set[tuple[str, str]]) -> bool:
    name, version = component["component"], component.get("version")
    if name == WORDS or not component.get("fallbackText"):
        return False
    return not any(name == known and version in {None, exact} for known, exact in rendered)
