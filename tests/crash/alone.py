"""A process of its own that does what a child of the parent does: `python -m tests.crash.alone '<order>'`."""

from __future__ import annotations

import json
import sys

import django

django.setup()  # what follows reads the settings

from tests.crash import site, work

if __name__ == "__main__":
    site.declare()
    work.do(json.loads(sys.argv[1]))
