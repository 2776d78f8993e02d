"""Every route of the console's API; a trailing slash is accepted too."""

from __future__ import annotations

from agent.api.routes import route
from governance.api import inbox, live, pricing, views

urlpatterns = [
    *route("spend", views.SpendView, "spend"),
    *route("top-threads", views.TopThreadsView, "top-threads"),
    *route("reliability", views.ReliabilityView, "reliability"),
    *route("tools", views.ToolsView, "tools"),
    *(each for name, view in {**views.TABLES, **inbox.TABLES}.items() for each in route(name, view, name)),
    *route("runs/<str:run_id>", views.RunView, "run"),
    *route("threads/<str:thread_id>", views.ThreadView, "thread"),
    *route("approvals/<str:subject>", inbox.ApprovalView, "approval"),
    *route("pricing", pricing.PricingView, "pricing"),
    *route("quota", pricing.QuotaView, "quota"),
    *route("stream", live.StreamView, "stream"),
]
