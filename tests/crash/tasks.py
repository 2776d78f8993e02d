"""What a worker imports with its tasks: the agent, and the plan of its death."""

import json
import os

from tests.crash import mortal, site

site.declare()
mortal.follow(json.loads(os.environ.get("CRASH_PLAN", "{}")))
