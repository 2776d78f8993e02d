"""Wake-ups by the channel layer, where the database has no NOTIFY: a group a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from channels.layers import BaseChannelLayer

from agent.sinks.broadcast import own_layer, post
from agent.sinks.pump import Pump

TYPE: Final = "agent.frames"
GROUP: Final = "agent.run."
MOST_CHARACTERS: Final = 99  # of a group's name, in any layer


def group_of(run_id: str) -> str | None:
    """The group of a run; None when no layer takes its id as a name, and its followers poll."""
    group = GROUP + run_id
    plain = group.isascii() and all(each.isalnum() or each in "-_." for each in group)
    return group if plain and len(group) <= MOST_CHARACTERS else None


def tell(run_id: str, seq: int) -> None:
    """Say that the run has rows up to `seq`; never waits and never raises."""
    if (group := group_of(run_id)) is not None:
        post(group, {"type": TYPE, "runId": run_id, "seq": seq})


class LayerEar:
    """One channel of the layer a process, in the groups of the runs that are followed here."""

    def __init__(self) -> None:
        self._layer: BaseChannelLayer | None = None
        self._channel = ""
        self._joined: set[str] = set()

    async def attend(self, run_ids: Collection[str]) -> None:
        if self._layer is None:
            return
        wanted = set(filter(None, map(group_of, run_ids)))
        for group in wanted - self._joined:
            await self._layer.group_add(group, self._channel)
            self._joined.add(group)
        for group in self._joined - wanted:
            await self._layer.group_discard(group, self._channel)
        self._joined &= wanted

    async def listen(self, pump: Pump) -> None:
        layer = own_layer()
        self._channel, self._joined = await layer.new_channel(), set()
        self._layer = layer
        try:
            await self.attend(pump.followed())
            pump.hears()
            while True:
                _pass_on(await layer.receive(self._channel), pump)
        finally:
            self._layer = None


def _pass_on(message: Mapping[str, Any], pump: Pump) -> None:
    if message.get("type") == TYPE:
        pump.heard(str(message["runId"]), int(message["seq"]))
