"""Every route of the HTTP API; a trailing slash is accepted too."""

from __future__ import annotations

from agent.api.routes import route
from agent.api.views.attachments import AttachmentsView, ContentView, UploadCompleteView, UploadsView, UploadView
from agent.api.views.catalogues import AgentsView, ModelsView, ToolsView
from agent.api.views.chat import CancelView, ChatView, StreamView
from agent.api.views.config import ConfigView, QuotaView
from agent.api.views.decisions import AnswerView, ApproveView, RejectView, SkipView
from agent.api.views.proposals import ProposalApproveView, ProposalListView, ProposalRejectView
from agent.api.views.queue import InterruptView, QueuedMessageView, QueueView, ResumeView
from agent.api.views.schema import SchemaView
from agent.api.views.threads import (
    FeedbackView,
    ForkView,
    PromoteView,
    ThreadListView,
    ThreadView,
    TruncateView,
)

PROPOSALS = "threads/<str:thread_id>/action-proposals"

urlpatterns = [
    *route("chat", ChatView, "chat"),
    *route("chat/<str:run_id>/stream", StreamView, "stream"),
    *route("chat/<str:run_id>/cancel", CancelView, "cancel"),
    *route("tool-call/approve", ApproveView, "approve"),
    *route("tool-call/reject", RejectView, "reject"),
    *route("tool-call/answer", AnswerView, "answer"),
    *route("tool-call/skip", SkipView, "skip"),
    *route("threads", ThreadListView, "threads"),
    *route("threads/<str:thread_id>", ThreadView, "thread"),
    *route("threads/<str:thread_id>/promote", PromoteView, "promote"),
    *route("threads/<str:thread_id>/fork-from/<str:message_id>", ForkView, "fork"),
    *route("threads/<str:thread_id>/from/<str:message_id>", TruncateView, "truncate"),
    *route("threads/<str:thread_id>/queue", QueueView, "queue"),
    *route("threads/<str:thread_id>/queue/resume", ResumeView, "resume"),
    *route(PROPOSALS, ProposalListView, "proposals"),
    *route(f"{PROPOSALS}/<str:proposal_id>/approve", ProposalApproveView, "proposal_approve"),
    *route(f"{PROPOSALS}/<str:proposal_id>/reject", ProposalRejectView, "proposal_reject"),
    *route("queue/<str:message_id>", QueuedMessageView, "queued_message"),
    *route("queue/<str:message_id>/interrupt", InterruptView, "interrupt"),
    *route("messages/<str:message_id>/feedback", FeedbackView, "feedback"),
    *route("attachments", AttachmentsView, "attachments"),
    *route("attachments/uploads", UploadsView, "uploads"),
    *route("attachments/uploads/<str:media_id>", UploadView, "upload"),
    *route("attachments/uploads/<str:media_id>/complete", UploadCompleteView, "upload_complete"),
    *route("attachments/<str:media_id>/content", ContentView, "attachment_content"),
    *route("agents", AgentsView, "agents"),
    *route("tools", ToolsView, "tools"),
    *route("models", ModelsView, "models"),
    *route("quota", QuotaView, "quota"),
    *route("config", ConfigView, "config"),
    *route("schema", SchemaView, "schema"),
]
