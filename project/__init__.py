"""The runnable site around the packages: a demo, and an example of a host."""

from project.celery import app as celery_app

__all__ = ["celery_app"]
