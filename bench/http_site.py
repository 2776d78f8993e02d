"""The small site as a server runs it."""

from __future__ import annotations

from django.core.asgi import get_asgi_application

django_application = get_asgi_application()

from agent.asgi import with_agent

application = with_agent(django_application)
