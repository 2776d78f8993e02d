"""Closed days as aggregated rows: built, kept true, checked and rebuilt (spec 08 §6)."""

from governance.rollups.building import build
from governance.rollups.checking import Difference, check
from governance.rollups.job import rebuild, roll_up
from governance.rollups.marks import KINDS, mark_dirty

__all__ = ["KINDS", "Difference", "build", "check", "mark_dirty", "rebuild", "roll_up"]
