"""The shapes of answers, for the OpenAPI document; `wire` makes them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from agent.domain.queue import PauseReason
from agent.domain.states import RunStatus

Shape = serializers.Serializer[dict[str, Any]]


class JsonValue(serializers.JSONField):
    """Whatever JSON can say."""


class ErrorShape(Shape):
    """Every error of this API."""

    message = serializers.CharField(help_text="A sentence that is safe to show.")
    code = serializers.CharField(required=False, help_text="A stable word for programs.")
    fields = serializers.DictField(  # type: ignore[assignment]
        child=serializers.ListField(child=serializers.CharField()),
        required=False,
        help_text="What is wrong with each field, query parameter or header.",
    )
    period = serializers.ChoiceField(choices=("day", "month"), required=False, help_text="Of `quota_exceeded`.")


class OkShape(Shape):
    ok = serializers.BooleanField()


class AbortedShape(Shape):
    aborted = serializers.BooleanField()


class StartedShape(Shape):
    threadId = serializers.CharField()
    runId = serializers.CharField()


class WordsDecidedShape(Shape):
    status = serializers.ChoiceField(
        ["applied", "unchanged", "conflict", "expired", "ambiguous", "not_found"],
        help_text="The last two decided nothing.",
    )
    proposalId = serializers.CharField(required=False)
    decision = serializers.CharField(required=False, help_text="The proposal's decision as it stands.")


class TextDecisionShape(Shape):
    threadId = serializers.CharField()
    proposalDecision = WordsDecidedShape()
    text = serializers.CharField(help_text="The reply to show.")


class ThreadSummaryShape(Shape):
    id = serializers.CharField()
    title = serializers.CharField()
    transient = serializers.BooleanField()
    defaultAgent = serializers.CharField(allow_null=True)
    model = serializers.CharField(allow_null=True)
    persona = serializers.CharField(allow_null=True)
    activeRunId = serializers.CharField(required=False, help_text="The run that is answering: join its stream.")
    lastMessagePreview = serializers.CharField()
    createdAt = serializers.DateTimeField()
    updatedAt = serializers.DateTimeField()


class ToolCallShape(Shape):
    id = serializers.CharField()
    providerCallId = serializers.CharField(required=False)
    name = serializers.CharField()
    input = JsonValue(allow_null=True)
    kind = serializers.CharField(required=False)


class ToolResultShape(Shape):
    id = serializers.CharField()
    name = serializers.CharField()
    output = JsonValue(required=False, allow_null=True)
    error = serializers.CharField(required=False)
    denied = serializers.BooleanField(required=False)
    expired = serializers.BooleanField(required=False)


class AttachmentShape(Shape):
    mediaId = serializers.CharField()
    url = serializers.CharField()
    contentType = serializers.CharField()
    name = serializers.CharField()


class MessageAttachmentShape(AttachmentShape):
    url = serializers.CharField(allow_null=True, help_text="Null: the file is no longer there.")


class AttachmentsConfigShape(Shape):
    maxBytes = serializers.IntegerField()
    types = serializers.ListField(child=serializers.CharField())
    resumable = serializers.BooleanField(help_text="Whether uploads may come in parts.")


class FeedbackShape(Shape):
    value = serializers.ChoiceField(choices=("up", "down"))
    comment = serializers.CharField(required=False)
    updatedAt = serializers.DateTimeField()


class FeedbackAnswerShape(Shape):
    feedback = FeedbackShape(allow_null=True)


class MessageShape(Shape):
    id = serializers.CharField()
    role = serializers.ChoiceField(choices=("user", "assistant", "system"))
    content = serializers.CharField()
    toolCalls = ToolCallShape(many=True, required=False)
    toolResults = ToolResultShape(many=True, required=False)
    attachments = MessageAttachmentShape(many=True, required=False)
    followUps = serializers.ListField(child=serializers.CharField(), required=False)
    usage = serializers.DictField(required=False, help_text="Token counts and `costUsd`; null is unpriced.")
    agentName = serializers.CharField(required=False)
    persona = serializers.CharField(required=False)
    runId = serializers.CharField(required=False)
    runStatus = serializers.ChoiceField(
        choices=tuple(RunStatus), required=False, help_text="Of an assistant message: how its run stands."
    )
    reasoning = serializers.CharField(required=False)
    reasoningMs = serializers.IntegerField(required=False)
    ui = serializers.ListField(child=serializers.DictField(), required=False)
    feedback = FeedbackShape(required=False)
    actionProposalOutcome = serializers.DictField(required=False)
    approvals = serializers.ListField(child=serializers.DictField(), required=False)
    createdAt = serializers.DateTimeField()


class QueuedMessageShape(Shape):
    """A message that waits; its id becomes that of its run."""

    id = serializers.CharField()
    content = serializers.CharField()
    attachments = AttachmentShape(many=True, required=False)
    agent = serializers.CharField(required=False)
    persona = serializers.CharField(required=False)
    model = serializers.CharField(required=False)
    interrupt = serializers.BooleanField(required=False)
    position = serializers.IntegerField(help_text="Its place from 0.")
    createdAt = serializers.DateTimeField()
    updatedAt = serializers.DateTimeField()


class PauseShape(Shape):
    """Why nothing starts by itself."""

    reason = serializers.ChoiceField(choices=[reason.value for reason in PauseReason])
    message = serializers.CharField(required=False, help_text="A sentence that is safe to show.")
    at = serializers.DateTimeField()


class QueueShape(Shape):
    """Messages that wait for the answer to end."""

    items = QueuedMessageShape(many=True)
    paused = PauseShape(allow_null=True)


class ResumedShape(QueueShape):
    runId = serializers.CharField(required=False, help_text="The run that was started.")


class InterruptedShape(ResumedShape):
    interrupting = serializers.BooleanField(required=False, help_text="The running answer was asked to stop.")


class QueuedShape(Shape):
    queued = serializers.BooleanField()
    threadId = serializers.CharField()
    messageId = serializers.CharField()
    position = serializers.IntegerField(
        allow_null=True, help_text="Its place from 0; null in a repeat when it was removed meanwhile."
    )
    queue = QueueShape()
    runId = serializers.CharField(required=False, help_text="It was started: join this run's stream.")
    interrupting = serializers.BooleanField(required=False, help_text="The running answer was asked to stop for it.")


class ThreadDetailShape(ThreadSummaryShape):
    messages = MessageShape(many=True)
    queue = QueueShape()


class PersonaShape(Shape):
    id = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]


class AgentShape(Shape):
    name = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    description = serializers.CharField()
    personas = PersonaShape(many=True)
    allowAsk = serializers.BooleanField()


class ToolShape(Shape):
    name = serializers.CharField()
    kind = serializers.CharField()
    description = serializers.CharField()
    schema = serializers.DictField(help_text="JSON Schema of the tool's input.")
    approval = serializers.DictField(required=False)


class ModelShape(Shape):
    id = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    available = serializers.BooleanField()
    locked = serializers.BooleanField()
    default = serializers.BooleanField()


class QuotaShape(Shape):
    windows = serializers.ListField(child=serializers.DictField())


class ModelsConfigShape(Shape):
    enabled = serializers.BooleanField()


class QuotaConfigShape(Shape):
    enforced = serializers.BooleanField()


class IdentityConfigShape(Shape):
    anonymous = serializers.BooleanField()


class QueueConfigShape(Shape):
    enabled = serializers.BooleanField()


class ApprovalsConfigShape(Shape):
    mode = serializers.ChoiceField(choices=("blocking", "independent"))


class ConfigShape(Shape):
    """What this installation offers the caller."""

    attachments = AttachmentsConfigShape(allow_null=True, help_text="Null: none are taken.")
    models = ModelsConfigShape()
    quota = QuotaConfigShape()
    identity = IdentityConfigShape()
    queue = QueueConfigShape()
    approvals = ApprovalsConfigShape()


class ProposalScopeShape(Shape):
    tenantRef = serializers.CharField(allow_null=True)
    actorRef = serializers.CharField()
    threadId = serializers.CharField()


class ProposalShape(Shape):
    """What was asked for, and what became of it; instants are milliseconds since 1970."""

    id = serializers.CharField()
    scope = ProposalScopeShape()
    originRunId = serializers.CharField()
    originMessageId = serializers.CharField()
    originToolCallId = serializers.CharField()
    toolName = serializers.CharField()
    input = serializers.JSONField()
    confirmation = serializers.DictField(allow_null=True)
    approver = serializers.CharField()
    fourEyes = serializers.BooleanField()
    onLost = serializers.ChoiceField(choices=("retry", "hold"))
    expiresAt = serializers.IntegerField(allow_null=True)
    createdAt = serializers.IntegerField()
    digest = serializers.CharField()
    decision = serializers.ChoiceField(choices=("pending", "approved", "rejected", "expired", "superseded"))
    audit = serializers.DictField(required=False)
    execution = serializers.DictField(required=False)
    outcome = serializers.DictField(required=False)
    delivery = serializers.DictField(required=False)
    supersededBy = serializers.CharField(required=False)


class ProposalDecisionShape(Shape):
    status = serializers.ChoiceField(choices=("applied", "unchanged", "conflict", "expired"))
    proposal = ProposalShape(required=False)
