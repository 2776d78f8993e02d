"""The test site's settings for a process that is going to die, on the database that the test names."""

import os

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES

AGENT = {
    "STORE": "tests.crash.mortal.MortalStore",
    "SINK_OPTIONS": {"flush_ms": 0},  # a row a piece of text, so that a point can lie between any two
    "BACKGROUND_ACTOR_RESOLVER": "tests.crash.site.StillThere",
    "PROVIDERS": {"scripted": "tests.crash.site.Model"},
    **({"RUNNER": "celery"} if "WORKER_BROKER" in os.environ else {}),
}
CELERY_BROKER_URL = os.environ.get("WORKER_BROKER")
CELERY_TASK_DEFAULT_QUEUE = os.environ.get("WORKER_QUEUE")
if "postgresql" in DATABASES["default"]["ENGINE"]:  # whose connections they are, for who cuts them
    DATABASES["default"]["OPTIONS"] |= {"application_name": f"crash-{os.getpid()}"}
