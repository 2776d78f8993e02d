"""The test site as a server runs it, for tests that start a real one."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django_application = get_asgi_application()

from agent.asgi import with_agent

application = with_agent(django_application)
