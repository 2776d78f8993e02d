"""SINK_CONTRACT (spec 05 §8): what every sink promises to who writes and who follows, in one process and in two."""

from agent.testing.contracts.sink_following import SINK_FOLLOWING
from agent.testing.contracts.sink_keeping import SINK_KEEPING
from agent.testing.contracts.sink_subject import SinkCase, SinkSubject
from agent.testing.contracts.sink_writing import SINK_WRITING

SINK_CONTRACT: list[SinkCase] = sorted([*SINK_WRITING, *SINK_FOLLOWING, *SINK_KEEPING], key=lambda case: case.name)

__all__ = ["SINK_CONTRACT", "SinkCase", "SinkSubject"]
