"""What a client may send. Types are strict: a number is no text and `"true"` is no boolean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.core.validators import ProhibitNullCharactersValidator
from django.utils.translation import gettext_lazy as _
from rest_framework import serializers
from rest_framework.validators import ProhibitSurrogateCharactersValidator

from agent.api.parsing import BODY_LIMIT, ID_MAX, NUMBER_MAX
from agent.domain.canonical import compact_json
from agent.domain.decisions import REASON_MAX, SERVERS_WORDS
from agent.domain.text import is_blank, is_exact

TITLE_MAX: Final = 255
COMMENT_MAX: Final = 2000
ATTACHMENTS_MAX: Final = 10
PAGE_CONTEXT_MAX: Final = 32 * 1024
VIA_MAX: Final = 64
DIGEST_MAX: Final = 64
MODES: Final = ("auto", "queue", "interrupt")


class Text(serializers.CharField):
    """A JSON text, as it comes: the store marks what no database can hold."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401  (the options of a CharField)
        super().__init__(trim_whitespace=False, **{"allow_blank": True, **options})
        unwanted = (ProhibitNullCharactersValidator, ProhibitSurrogateCharactersValidator)
        self.validators = [one for one in self.validators if not isinstance(one, unwanted)]

    def to_internal_value(self, data: object) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return data


class Name(Text):
    """An id or a name: 1 to 255 characters that compare exactly."""

    default_error_messages = {"inexact": _("NUL and lone surrogates are not allowed.")}

    def __init__(self, **options: Any) -> None:  # noqa: ANN401  (the options of a CharField)
        super().__init__(allow_blank=False, min_length=1, max_length=ID_MAX, **options)

    def to_internal_value(self, data: object) -> str:
        value = super().to_internal_value(data)
        if not is_exact(value):
            self.fail("inexact")
        return value


class Flag(serializers.BooleanField):
    def to_internal_value(self, data: object) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class Via(Text):
    """How somebody decided, in the client's own word; what the server alone writes is refused."""

    default_error_messages = {
        "inexact": _("NUL and lone surrogates are not allowed."),
        "reserved": _("{via} is written by the server alone."),
    }

    def __init__(self) -> None:
        super().__init__(required=False, default="web", allow_blank=False, min_length=1, max_length=VIA_MAX)

    def to_internal_value(self, data: object) -> str:
        value = super().to_internal_value(data)
        if not is_exact(value):
            self.fail("inexact")
        if value in SERVERS_WORDS:
            self.fail("reserved", via=value)
        return value


class Place(serializers.IntegerField):
    """A place in a list, from 0."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401  (the options of an IntegerField)
        super().__init__(min_value=0, **options)

    def to_internal_value(self, data: object) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return min(data, NUMBER_MAX)


class JsonObject(serializers.DictField):
    """A JSON object of bounded size, kept as it is."""

    default_error_messages = {"too_large": _("At most {limit} bytes of JSON.")}

    def __init__(self, *, max_bytes: int, **options: Any) -> None:  # noqa: ANN401  (the options of a DictField)
        super().__init__(**options)
        self.max_bytes = max_bytes

    def to_internal_value(self, data: object) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("not_a_dict", input_type=type(data).__name__)
        if len(compact_json(data)) > self.max_bytes:
            self.fail("too_large", limit=self.max_bytes)
        return data


class StrictBody(serializers.Serializer[dict[str, Any]]):
    """A body in which a field that nobody knows is an error."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:  # noqa: ANN401  (as Serializer has it)
        if isinstance(data, Mapping) and (unknown := sorted(set(data) - set(self.fields))):
            raise serializers.ValidationError({str(name): [_("Unknown field.")] for name in unknown})
        values: dict[str, Any] = super().to_internal_value(data)
        return values


class AttachmentRef(StrictBody):
    """An attachment is sent by the id that staging gave it, and by nothing else."""

    mediaId = Name()


class Size(serializers.IntegerField):
    """A number of bytes."""

    def to_internal_value(self, data: object) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return data


class UploadBody(serializers.Serializer[dict[str, Any]]):
    """What is said of a file before its bytes come."""

    name = Name()
    contentType = Name()
    size = Size(min_value=1)


class Component(serializers.Serializer[dict[str, Any]]):
    name = Name()
    version = Name()


class UiCapabilities(serializers.Serializer[dict[str, Any]]):
    """Which components the client can show."""

    components = Component(many=True)

    def run_validation(self, data: Any = serializers.empty) -> Any:  # noqa: ANN401  (as Serializer has it)
        try:
            return super().run_validation(data)
        except serializers.ValidationError:
            text = _("Must be {components: [{name, version}]}.")
            raise serializers.ValidationError([text], code="bad_capabilities") from None


class SendBody(serializers.Serializer[dict[str, Any]]):
    """A message to an agent."""

    message = Text(required=False, allow_null=True, help_text="Required unless `regenerate`.")
    threadId = Name(required=False, allow_null=True, help_text="Absent: a new thread.")
    agent = Name(required=False, allow_null=True)
    persona = Name(required=False, allow_null=True)
    model = Name(required=False, allow_null=True)
    attachments = serializers.ListField(
        child=AttachmentRef(), required=False, allow_null=True, max_length=ATTACHMENTS_MAX
    )
    pageContext = JsonObject(required=False, allow_null=True, max_bytes=PAGE_CONTEXT_MAX)
    regenerate = Flag(required=False, default=False)
    transient = Flag(required=False, default=False)
    mode = serializers.ChoiceField(choices=MODES, required=False, default="auto")
    uiCapabilities = UiCapabilities(required=False, allow_null=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["regenerate"]:
            return attrs
        message = attrs.get("message")
        if message is None:
            raise serializers.ValidationError({"message": [_("This field is required.")]})
        if not attrs.get("attachments") and is_blank(message):
            error = serializers.ErrorDetail(str(_("Write something, or attach a file.")), code="empty_message")
            raise serializers.ValidationError({"message": [error]})
        return attrs


class QueuedPatchBody(serializers.Serializer[dict[str, Any]]):
    """What is absent stays; attachments null are dropped."""

    message = Text(required=False)
    attachments = serializers.ListField(
        child=AttachmentRef(), required=False, allow_null=True, max_length=ATTACHMENTS_MAX
    )
    position = Place(required=False, help_text="From 0; more than there are is the last.")


class ThreadPatchBody(serializers.Serializer[dict[str, Any]]):
    """What is absent stays; null clears."""

    title = Text(required=False, allow_null=True, max_length=TITLE_MAX)
    defaultAgent = Name(required=False, allow_null=True)
    model = Name(required=False, allow_null=True)
    persona = Name(required=False, allow_null=True)


class FeedbackBody(serializers.Serializer[dict[str, Any]]):
    """Null takes the feedback back."""

    value = serializers.ChoiceField(choices=("up", "down"), allow_null=True)
    comment = Text(required=False, allow_null=True, max_length=COMMENT_MAX)


class DecisionBody(serializers.Serializer[dict[str, Any]]):
    """What every decision about a call names; `digest` is that of the card that was shown."""

    toolCallId = Name()
    digest = Text(required=False, allow_null=True, max_length=DIGEST_MAX)
    via = Via()


class ApproveBody(DecisionBody):
    remember = Flag(required=False, default=False)


class AnswerBody(DecisionBody):
    """`answers`: for each question's id a list of texts."""

    answers = JsonObject(max_bytes=BODY_LIMIT)


class RejectBody(DecisionBody):
    reason = Text(required=False, allow_null=True, max_length=REASON_MAX)


class ProposalDecisionBody(StrictBody):
    """`digest` is that of the card that was shown."""

    digest = Text(required=False, allow_null=True, max_length=DIGEST_MAX)


class ApproveProposalBody(ProposalDecisionBody):
    remember = Flag(required=False, default=False)


class RejectProposalBody(ProposalDecisionBody):
    reason = Text(required=False, allow_null=True, max_length=REASON_MAX)
