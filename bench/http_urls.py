"""The API of the small site, for a server."""

from django.urls import include, path

urlpatterns = [path("agent/", include("agent.urls"))]
