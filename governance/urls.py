"""What a host mounts: `path("governance/", include("governance.urls"))`."""

from __future__ import annotations

from django.urls import include, path

app_name = "governance"
urlpatterns = [path("api/", include("governance.api.urls"))]
