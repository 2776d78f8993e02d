"""The test site as a server runs it."""

import os
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.edges.live.settings")
django_application = get_asgi_application()

# These need the apps that the line above has loaded.
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from channels.sessions import SessionMiddlewareStack
from django.urls import path

from agent.asgi import with_agent
from agent.consumers import AgentConsumer
from agent.routing import websocket_urlpatterns
from agent.sockets.session import SocketPace

# The second is for tests that cannot wait for a minute.
quick = AgentConsumer.as_asgi(pace=SocketPace(ping_seconds=0.1, look_seconds=0.2))
routes: Any = [*websocket_urlpatterns, path("ws/quick/", quick)]  # type: ignore[arg-type]
sockets = AllowedHostsOriginValidator(SessionMiddlewareStack(URLRouter(routes)))

application = with_agent(ProtocolTypeRouter({"http": django_application, "websocket": sockets}))
