"""What a host mounts: `path("agent/", include("agent.urls"))`."""

from agent.api.urls import urlpatterns

__all__ = ["app_name", "urlpatterns"]

app_name = "agent"
