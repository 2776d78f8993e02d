"""What happens how often: weighted choices that are made many times."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import accumulate
from typing import Generic, TypeVar

from governance.sample.cast import AGENTS, ERRORS, MODELS, PURPOSES, TENANTS, TOOLS

T = TypeVar("T")


class Choice(Generic[T]):
    """One of several, each as often as its weight says."""

    def __init__(self, weighted: Mapping[T, int]) -> None:
        self._of, self._up_to = tuple(weighted), tuple(accumulate(weighted.values()))

    def by(self, chance: random.Random) -> T:
        return chance.choices(self._of, cum_weights=self._up_to)[0]


MODEL_CHOICE = Choice({model: model.weight for model in MODELS})
TOOL_CHOICE = Choice({(name, kind): weight for name, kind, weight in TOOLS})
STATUS_CHOICE = Choice({"completed": 94, "failed": 4, "cancelled": 2})
RETRIES_CHOICE = Choice({0: 95, 1: 4, 2: 1})
AGENT_CHOICE, TENANT_CHOICE = Choice(AGENTS), Choice(TENANTS)
PURPOSE_CHOICE, ERROR_CHOICE = Choice(PURPOSES), Choice(ERRORS)
