"""How the installation is set up for the caller, and what is left of their limits."""

from __future__ import annotations

from typing import cast

from django.middleware.csrf import get_token
from rest_framework.request import Request
from rest_framework.response import Response

from agent.actors import ANONYMOUS_ROLE
from agent.api import docs
from agent.api.base import ActorAPIView
from agent.api.shapes import ConfigShape, QuotaShape
from agent.conf import agent_settings
from agent.flows import attachments
from agent.flows.queue import is_enabled
from agent.spi import QuotaPolicy


class ConfigView(ActorAPIView):
    @docs.operation("config_read", "Read the configuration", answers={200: docs.answer(ConfigShape)}, errors={})
    def get(self, request: Request) -> Response:
        """What a client has to know before it draws anything; it also hands out the CSRF cookie."""
        get_token(request._request)
        settings = agent_settings()
        return Response(
            {
                "attachments": attachments.offered(),
                "models": {"enabled": bool(settings.models)},
                "quota": {"enforced": settings.quota is not None},
                "identity": {"anonymous": ANONYMOUS_ROLE in self.actor.roles},
                "queue": {"enabled": is_enabled()},
                "approvals": {"mode": settings.action_approval_mode},
            }
        )


class QuotaView(ActorAPIView):
    @docs.operation("quota_read", "Read the limits", answers={200: docs.answer(QuotaShape)}, errors={})
    def get(self, request: Request) -> Response:
        """Each limit with what is used of it; no windows where nothing is limited."""
        if agent_settings().quota is None:
            return Response({"windows": []})
        policy = cast("QuotaPolicy", agent_settings().quota_policy)
        return Response(policy.report(self.actor))
