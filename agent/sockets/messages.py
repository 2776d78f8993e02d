"""What a client may say on a socket: one JSON object a message, with a `type` and a `ref` that comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rest_framework import serializers

from agent.api.bodies import (
    AnswerBody,
    ApproveBody,
    ApproveProposalBody,
    DecisionBody,
    Name,
    RejectBody,
    RejectProposalBody,
)
from agent.api.parsing import NUMBER_MAX, json_object, parse
from agent.errors import Invalid

ENVELOPE: Final = frozenset({"type", "ref"})
DECISIONS: Final = frozenset({"approve", "reject", "answer", "skip"})


class Nothing(serializers.Serializer[dict[str, Any]]):
    pass


class RunRef(serializers.Serializer[dict[str, Any]]):
    runId = Name()


class AttachBody(RunRef):
    after = serializers.IntegerField(required=False, default=0, min_value=0)

    def to_internal_value(self, data: Any) -> dict[str, Any]:  # noqa: ANN401  (as Serializer has it)
        after = data.get("after", 0)
        if not isinstance(after, int) or isinstance(after, bool) or after < 0:
            raise serializers.ValidationError({"after": ["a whole number from 0"]})
        values: dict[str, Any] = super().to_internal_value({**data, "after": min(after, NUMBER_MAX)})
        return values


class ThreadRef(serializers.Serializer[dict[str, Any]]):
    threadId = Name()


class ProposalRef(ThreadRef):
    proposalId = Name()


class ApproveProposal(ApproveProposalBody, ProposalRef): ...


class RejectProposal(RejectProposalBody, ProposalRef): ...


PROPOSALS: Final[Mapping[str, type[serializers.Serializer[dict[str, Any]]]]] = {
    "approve": ApproveProposal,
    "reject": RejectProposal,
}


BODIES: Final[Mapping[str, type[serializers.Serializer[dict[str, Any]]] | None]] = {
    "send": None,  # the body of POST chat, which is parsed where that is
    "cancel": RunRef,
    "approve": ApproveBody,
    "reject": RejectBody,
    "answer": AnswerBody,
    "skip": DecisionBody,
    "attach": AttachBody,
    "detach": RunRef,
    "watch": ThreadRef,
    "unwatch": ThreadRef,
    "ping": Nothing,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A message that may be carried out. `body` is as it came, without type and ref; `values` are checked."""

    kind: str
    ref: str
    body: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)


def read(text: str) -> dict[str, Any]:
    """The JSON object of a message."""
    return json_object(text.encode("utf-8", "surrogatepass"))


def ref_of(message: Mapping[str, Any]) -> str | None:
    """The client's own name of the message, if it has a usable one."""
    ref = message.get("ref")
    return ref if isinstance(ref, str) and 1 <= len(ref) <= 255 else None


def asked(message: Mapping[str, Any]) -> Asked:
    """The message with its fields checked; `Invalid` names what is wrong and what may be."""
    ref, kind = ref_of(message), message.get("type")
    if ref is None:
        raise Invalid.field("ref", "a text of 1 to 255 characters")
    if not isinstance(kind, str) or kind not in BODIES:
        raise Invalid.field("type", f"one of {', '.join(BODIES)}")
    body = {name: value for name, value in message.items() if name not in ENVELOPE}
    shape = PROPOSALS.get(kind, ProposalRef) if kind in DECISIONS and "proposalId" in body else BODIES[kind]
    return Asked(kind=kind, ref=ref, body=body, values={} if shape is None else parse(shape, body))
