"""The test site's settings for a worker."""

import os

from tests.settings import *  # noqa: F403

CELERY_BROKER_URL = os.environ["WORKER_BROKER"]
CELERY_TASK_DEFAULT_QUEUE = os.environ["WORKER_QUEUE"]
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 4.0
AGENT = {
    "BACKGROUND_ACTOR_RESOLVER": "tests.workers.model.StillThere",
    "RUNNER": "celery",
    "PROVIDERS": {"scripted": "tests.workers.model.provider"},
    "DEFAULT_AGENT": "desk",
    "RUN_LEASE_SECONDS": int(os.environ.get("WORKER_LEASE", "3")),
    "PROPOSAL_LEASE_SECONDS": 4,
}
