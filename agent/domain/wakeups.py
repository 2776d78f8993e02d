"""What a wake-up between processes carries: which run has rows, up to which number, and who stored them."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from typing import Final

CHANNEL: Final = "agent_stream"  # of PostgreSQL's NOTIFY


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeUp:
    run_id: str
    seq: int
    origin: str


def read(payload: str) -> WakeUp | None:
    """The wake-up of a NOTIFY, which the frame insert writes as `seq origin run_id`; None for what is not ours."""
    seq, _, rest = payload.partition(" ")
    origin, _, run_id = rest.partition(" ")
    return WakeUp(run_id=run_id, seq=int(seq), origin=origin) if seq.isdecimal() and run_id else None


def this_process() -> str:
    """A name that a process has to itself, and a fork of it has not."""
    return _name


def _new_name() -> None:
    global _name
    _name = secrets.token_hex(6)


_name = secrets.token_hex(6)
os.register_at_fork(after_in_child=_new_name)
