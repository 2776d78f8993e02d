"""What a serving process keeps up for this app, where no beat does."""

from __future__ import annotations

from agent.flows import upkeep
from governance.rollups import roll_up

ROLL_UP_SECONDS = 300

upkeep.others[roll_up] = ROLL_UP_SECONDS
