"""A host's Celery application: `celery -A tests.workers.app worker`."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.workers.settings")

app = Celery("workers")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["agent", "tests.workers"])
