"""Believable data for demos, screenshots, tests and benches: the same for the same seed and day."""

from governance.sample.making import Sample, make

__all__ = ["Sample", "make"]
