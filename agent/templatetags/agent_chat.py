"""What the chat page must know of the site it is in."""

from __future__ import annotations

from dataclasses import dataclass

from django import template
from django.conf import settings
from django.shortcuts import resolve_url
from django.urls import reverse
from django.utils.translation import get_language

register = template.Library()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSettings:
    api: str  # where the host mounted `agent.urls`
    csrf_cookie: str
    login: str
    language: str


@register.simple_tag
def chat_settings() -> ChatSettings:
    """The addresses and names that the chat page's script is given."""
    return ChatSettings(
        api=reverse("agent:config").removesuffix("config"),
        csrf_cookie=settings.CSRF_COOKIE_NAME,
        login=resolve_url(settings.LOGIN_URL),
        language=get_language() or settings.LANGUAGE_CODE,
    )
