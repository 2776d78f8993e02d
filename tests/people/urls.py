"""The agent alone."""

from django.urls import include, path

urlpatterns = [path("agent/", include("agent.urls"))]
