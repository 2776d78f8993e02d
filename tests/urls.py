from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("agent/", include("agent.urls")),
    path("governance/", include("governance.urls")),
    path("admin/", admin.site.urls),
]
