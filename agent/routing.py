"""Where sockets are mounted: `ProtocolTypeRouter({"http": ..., "websocket": websocket_application})`."""

from __future__ import annotations

from channels.routing import URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from channels.sessions import SessionMiddlewareStack
from django.urls import path

from agent.consumers import AgentConsumer

__all__ = ["websocket_application", "websocket_urlpatterns"]

# Django's types know no consumers.
websocket_urlpatterns = [path("ws/agent/", AgentConsumer.as_asgi())]  # type: ignore[arg-type]

# For a host without sockets of its own: pages of its own hosts alone, known by the session that the site itself uses.
websocket_application = AllowedHostsOriginValidator(
    SessionMiddlewareStack(URLRouter(websocket_urlpatterns)),  # type: ignore[arg-type]
)
