"""The test site as a server runs it."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.edges.live.settings")
django_application = get_asgi_application()

from agent.asgi import with_agent  # noqa: E402  (needs the apps that the line above has loaded)

application = with_agent(django_application)
