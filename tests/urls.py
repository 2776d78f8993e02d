from importlib.util import find_spec

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    *([path("agent/", include("agent.urls"))] if find_spec("agent.urls") else []),
    path("admin/", admin.site.urls),
]
