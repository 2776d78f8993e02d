"""What there is for this actor: agents, tools, models, limits, and how the installation is set up."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from agent.api import docs
from agent.api.base import ActorAPIView
from agent.api.parsing import query_text
from agent.api.shapes import AgentShape, ConfigShape, ModelShape, QuotaShape, ToolShape
from agent.conf import agent_settings
from agent.flows import catalogue


class AgentsView(ActorAPIView):
    @docs.operation("agents_list", "List agents", answers={200: docs.answer(AgentShape(many=True))}, errors={})
    def get(self, request: Request) -> Response:
        """The agents that the caller may use."""
        return Response(catalogue.agents_for(self.actor))
