"""What a host builds its input and output processors from."""

from agent.domain.processing import (
    LOOKBACK,
    InputPrompt,
    ProcessorContext,
    Verdict,
    passed,
    rejected,
    replaced,
)
from agent.spi import InputProcessor, OutputProcessor

__all__ = [
    "LOOKBACK",
    "InputProcessor",
    "InputPrompt",
    "OutputProcessor",
    "ProcessorContext",
    "Verdict",
    "passed",
    "rejected",
    "replaced",
]
