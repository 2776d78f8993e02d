"""Journals as they were recorded, one file a shape, never changed: a run that stands in one must replay for ever.

`python -m tests.golden` records the shapes that have no file yet.
"""
