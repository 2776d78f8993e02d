"""The Celery application of a worker that is going to die: `celery -A tests.crash.app worker`."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.crash.settings")

app = Celery("crash")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["agent", "tests.crash"])
