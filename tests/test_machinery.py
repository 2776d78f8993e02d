"""The stage itself: the database of the leg, the shut network, services from pip."""

from __future__ import annotations

import os
import socket
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlparse

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, connections

from tests.conftest import VENDORS
from tests.network import NetworkShut


@pytest.mark.django_db
def test_the_leg_runs_on_its_own_database() -> None:
    assert connection.vendor == VENDORS[urlparse(os.environ.get("DATABASE_URL", "")).scheme]
    get_user_model().objects.create_user("ana")
    assert get_user_model().objects.get().username == "ana"


@pytest.mark.django_db(transaction=True)
def test_threads_write_to_one_database_at_once() -> None:
    users = get_user_model().objects

    def write(number: int) -> None:
        for step in range(20):
            users.create_user(f"user-{number}-{step}")
            users.count()
        connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert users.count() == 80


@pytest.mark.only_on("sqlite")
@pytest.mark.django_db
def test_sqlite_is_a_file_that_reads_while_it_writes() -> None:
    assert connection.settings_dict["TEST"]["NAME"].startswith("/")
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        assert cursor.fetchone() == ("wal",)


@pytest.mark.once
@pytest.mark.parametrize("address", [("192.0.2.1", 80), ("example.org", 80)])
def test_the_network_is_shut(address: tuple[str, int]) -> None:
    with pytest.raises(NetworkShut):
        socket.create_connection(address, timeout=1)


@pytest.mark.once
def test_a_service_from_pip_answers(redis_url: str) -> None:
    where = urlparse(redis_url)
    with socket.create_connection((str(where.hostname), where.port or 0), timeout=1) as client:
        client.sendall(b"PING\r\n")
        assert client.recv(100) == b"+PONG\r\n"
