"""The ASGI application, wrapped so that a serving process also drives runs, recovery and the embedded worker."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django_application = get_asgi_application()

# These need the apps that the line above has loaded.
from channels.routing import ProtocolTypeRouter

from agent.asgi import with_agent
from agent.routing import websocket_application

application = with_agent(ProtocolTypeRouter({"http": django_application, "websocket": websocket_application}))
