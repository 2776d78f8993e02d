"""A web process that sends runs, a broker, and workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import celery
import pytest
from django.test import override_settings

from agent.flows import dispatch
from agent.registry import isolated_registry
from agent.runners.celery import CeleryRunner
from tests.workers.model import declare, provider
from tests.workers.process import Worker

StartWorker = Callable[..., Worker]


@pytest.fixture
def queue() -> str:
    return f"turns-{uuid4()}"


@pytest.fixture
def broker(redis_url: str, queue: str) -> Iterator[str]:
    """The broker of this process's Celery application."""
    conf = celery.current_app.conf
    before = {"broker_url": conf.broker_url, "task_default_queue": conf.task_default_queue}
    conf.update(broker_url=redis_url, task_default_queue=queue)
    yield redis_url
    conf.update(before)


@pytest.fixture
def web(transactional_db: None, broker: str) -> Iterator[CeleryRunner]:
    """This process admits, and sends to workers."""
    runner = CeleryRunner()
    with isolated_registry():
        declare()
        settings = {"RUNNER": "celery", "PROVIDERS": {"scripted": provider}, "DEFAULT_AGENT": "desk"}
        with override_settings(AGENT={**settings, "RUN_LEASE_SECONDS": 3}):
            before = dispatch.use(runner)
            yield runner
            dispatch.use(before)
            runner.stop(5)


@pytest.fixture
def worker(web: CeleryRunner, broker: str, queue: str, tmp_path: Path) -> Iterator[StartWorker]:
    """Start workers; what is left of them is killed."""
    started: list[Worker] = []

    def start(**options: str) -> Worker:
        started.append(Worker(broker, queue, tmp_path / f"worker-{len(started)}.log", **options))
        return started[-1]

    yield start
    for each in started:
        each.kill()
