"""Where a host mounts what: the agent's API, the admin with its console, and the site's own pages."""

from django.contrib import admin
from django.contrib.auth.views import LogoutView
from django.urls import include, path

from project.views import DemoLoginView, HomeView

urlpatterns = [
    path("", HomeView.as_view(), name="home"),
    path("login/", DemoLoginView.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("agent/", include("agent.urls")),
    path("governance/", include("governance.urls")),
    path("admin/", admin.site.urls),
]
