"""What there is for this actor: agents, tools, models."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from agent.api import docs
from agent.api.base import ActorAPIView
from agent.api.parsing import query_text
from agent.api.shapes import AgentShape, ModelShape, ToolShape
from agent.flows import catalogue


class AgentsView(ActorAPIView):
    @docs.operation("agents_list", "List agents", answers={200: docs.answer(AgentShape(many=True))}, errors={})
    def get(self, request: Request) -> Response:
        """The agents that the caller may use."""
        return Response(catalogue.agents_for(self.actor))


class ToolsView(ActorAPIView):
    @docs.operation(
        "tools_list",
        "List an agent's tools",
        answers={200: docs.answer(ToolShape(many=True))},
        errors={400: ("invalid_body", "agent_not_found")},
        parameters=[docs.AGENT_OR_ALL],
    )
    def get(self, request: Request) -> Response:
        """What the agent's model would be offered for the caller, by the same gates as at run time."""
        return Response(catalogue.tools_for(self.actor, query_text(request, "agent")))


class ModelsView(ActorAPIView):
    @docs.operation(
        "models_list",
        "List models",
        answers={200: docs.answer(ModelShape(many=True))},
        errors={400: ("invalid_body", "agent_not_found")},
        parameters=[docs.ONE_AGENT],
    )
    def get(self, request: Request) -> Response:
        """What the caller may choose for the agent; empty where there is nothing to choose."""
        return Response(catalogue.models_for(self.actor, query_text(request, "agent")))
