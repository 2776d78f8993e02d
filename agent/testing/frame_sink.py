"""The sink in memory, under the name it has for tests."""

from agent.sinks.memory import MemorySink as InMemoryFrameSink

__all__ = ["InMemoryFrameSink"]
