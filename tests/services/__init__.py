"""Real servers for tests and benches: each starts in under a second, is ours alone and leaves nothing behind."""

from tests.services.mariadb import mariadb_server
from tests.services.postgres import PostgresServer, postgres_server, start_postgres
from tests.services.valkey import ValkeyServer, start_valkey, valkey_server

__all__ = [
    "PostgresServer",
    "ValkeyServer",
    "mariadb_server",
    "postgres_server",
    "start_postgres",
    "start_valkey",
    "valkey_server",
]
