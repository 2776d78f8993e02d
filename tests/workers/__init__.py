"""Runs on Celery: real workers in processes of their own, a real broker, and the sender in this process."""
