"""The Channels consumer of the agent (spec 09 §6); `agent.routing` mounts it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from channels.consumer import AsyncConsumer

from agent.sockets.session import PACE, Socket, SocketPace


class AgentConsumer(AsyncConsumer):
    """Serves one socket.

    Not by the dispatch of Channels: that one passes each message through the thread that all sync code of a process
    shares, and ends the socket when the channel layer fails. Notices come another way (`agent.sinks.notices`).
    """

    def __init__(self, *, pace: SocketPace = PACE) -> None:
        super().__init__()
        self.pace = pace

    async def __call__(
        self,
        scope: Any,  # noqa: ANN401  (each server and middleware types them its own way)
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        await Socket(scope, receive, send, self.pace).serve()
