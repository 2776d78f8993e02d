"""People of one page by name: whoever is shown is looked up in one call, when the first of them is drawn."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from django.utils.functional import Promise, lazystr

from agent.domain.text import visible
from governance.labels import labels

logger = logging.getLogger(__name__)


class Names:
    def __init__(self) -> None:
        self._asked: set[str] = set()
        self._known: dict[str, str] = {}

    def know(self, known: Mapping[str, str]) -> None:
        """Names that a query has brought along."""
        self._known.update(known)

    def __call__(self, ref: str) -> Promise:
        """The name, which is found out when it is drawn; the ref of somebody without one."""
        self._asked.add(ref)
        return lazystr(_Name(self, ref))

    def of(self, ref: str) -> str:
        wanted, self._asked = self._asked - self._known.keys(), set()
        if wanted:
            self._known |= dict.fromkeys(wanted, "") | dict(self._looked_up(wanted))
        return visible(self._known.get(ref) or ref)

    def _looked_up(self, refs: set[str]) -> Mapping[str, str]:
        try:
            return labels(refs)
        except Exception:  # a page without names is better than none
            logger.exception("The names of people could not be looked up")
            return {}


class _Name:
    def __init__(self, names: Names, ref: str) -> None:
        self._names, self._ref = names, ref

    def __str__(self) -> str:
        return self._names.of(self._ref)
