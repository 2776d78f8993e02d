"""Who calls: the site's users, and a directory that may be slow."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from agent.actors import DjangoUserResolver
from agent.domain.actor import Actor


class SlowDirectory(DjangoUserResolver):
    """Waits for the file that the header `x-hold` of a socket names."""

    def resolve(self, request: Any) -> Actor | None:
        if isinstance(request, dict):
            for name, value in request["headers"]:
                while name == b"x-hold" and not Path(value.decode()).exists():
                    time.sleep(0.01)
        return super().resolve(request)
