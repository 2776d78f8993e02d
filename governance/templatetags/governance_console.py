"""What a host's own admin template may show of the console."""

from __future__ import annotations

from django import template
from django.http import HttpRequest
from django.template import Context

from governance.admin.console.navigation import Way, screens_of

register = template.Library()


@register.simple_tag(takes_context=True)
def console_screens(context: Context) -> list[Way]:
    """The screens of the console that this person may open: `{% console_screens as screens %}`."""
    request = context.get("request")
    if not isinstance(request, HttpRequest) or not hasattr(request, "user"):
        return []
    return screens_of(request, getattr(request, "current_app", None) or "admin")
