"""The site's own pages."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.mixins import LoginRequiredMixin
from django.contrib.auth.views import LoginView
from django.views.generic import TemplateView

from project.accounts import ACCOUNTS, PASSWORD

SUGGESTIONS = ["Where is order 1042?", "List my orders", "What happened to order 1043?", "Help"]


class HomeView(LoginRequiredMixin, TemplateView):
    template_name = "home.html"
    extra_context = {"suggestions": SUGGESTIONS}


class DemoLoginView(LoginView):
    """The sign-in page, which names the demo's accounts where they exist: in DEBUG only."""

    template_name = "login.html"
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: object) -> dict[str, Any]:
        demo = {"accounts": ACCOUNTS, "password": PASSWORD} if settings.DEBUG else {}
        return super().get_context_data(**kwargs) | demo
