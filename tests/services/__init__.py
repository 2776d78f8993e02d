"""Real servers from pip for tests and benches: each starts in under a second and leaves nothing behind."""

from tests.services.postgres import PostgresServer, postgres_server
from tests.services.valkey import ValkeyServer, valkey_server

__all__ = ["PostgresServer", "ValkeyServer", "postgres_server", "valkey_server"]
