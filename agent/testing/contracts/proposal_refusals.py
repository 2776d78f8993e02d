"""PROPOSAL_CONTRACT (spec 02 §5.7): what is rejected, without a row and without effect."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from agent.domain.proposal_json import snapshot
from agent.domain.proposals import ProposalScope, Settlement
from agent.testing.contracts.base import same
from agent.testing.contracts.proposal_rows import (
    MINE,
    OTHERS,
    asked,
    claim,
    decide,
    made,
    needed,
    refused,
    settle,
    stored,
)
from agent.testing.contracts.proposals import PROPOSAL_CONTRACT
from agent.testing.contracts.store import StoreSubject, case


@case(PROPOSAL_CONTRACT, "08 what is not JSON is rejected without a row")
def _not_json(subject: StoreSubject) -> None:
    store = subject.store
    cycle: list[object] = []
    cycle.append(cycle)
    for value in (math.nan, math.inf, {1: 2}, (1,), {1, 2}, object(), b"x", cycle):
        for field in ("input", "preparation_input"):
            refused(lambda value=value, field=field: made(store, **{field: value}), f"{field} {value!r:.40}")  # type: ignore[misc]
    same(store.find_proposal("p1"), None, "the row")


@case(PROPOSAL_CONTRACT, "09 malformed creations, and a clock without a zone, are rejected without a row")
def _malformed(subject: StoreSubject) -> None:
    store, clock = subject.store, subject.clock
    for name, value in (
        ("scope", replace(MINE, actor_ref="")),
        ("scope", {"actorRef": "ana", "threadId": "t"}),
        ("expires_at", math.inf),
        ("expires_at", "tomorrow"),
        ("expires_at", True),
        ("on_lost", "shrug"),
        ("four_eyes", None),
        ("confirmation", "Sure?"),
        ("replacement_key", 7),
        ("unknown", 1),
    ):
        refused(lambda name=name, value=value: made(store, **{name: value}), name)  # type: ignore[misc]
    refused(lambda: ProposalScope(actor_ref="ana", thread_id="t"), "a missing tenant")  # type: ignore[call-arg]
    now = clock.now
    clock.now = now.replace(tzinfo=None)
    refused(lambda: made(store), "a clock without a zone")
    clock.now = now
    same(store.find_proposal("p1"), None, "the row")


@case(PROPOSAL_CONTRACT, "10 invented commands are rejected without effect")
def _invented(subject: StoreSubject) -> None:
    store = subject.store
    made(store)
    for word in ("superseded", "pending", "maybe", ""):
        refused(lambda word=word: decide(store, word), word)  # type: ignore[misc]
    same(stored(store).decision, "pending", "the decision")
    decide(store)
    for lease in (0, -1, 0.5, math.nan, True, None, "1"):
        refused(lambda lease=lease: store.claim_proposal(MINE, "p1", lease, "w"), f"lease {lease}")  # type: ignore[misc]
    held = needed(claim(store))
    for status in ("unknown", "done", "queued"):
        refused(lambda status=status: settle(store, held, Settlement(status=status)), status)  # type: ignore[misc]
    refused(lambda: settle(store, held, Settlement(status="failed")), "a failure without an error")
    refused(lambda: settle(store, held, Settlement(status="succeeded", error="x")), "a success with one")
    same(snapshot(stored(store)), snapshot(held), "the row")


@case(PROPOSAL_CONTRACT, "12 what is too long is rejected, also where a row of another scope has that id")
def _too_long(subject: StoreSubject) -> None:
    store, long = subject.store, "x" * 256
    made(store, "x" * 255, replace(MINE, tenant_ref="t" * 255, actor_ref="a" * 255, thread_id="t" * 255))
    for field in ("id", "origin_run_id", "origin_message_id", "origin_tool_call_id", "tool_name", "approver"):
        for text in (long, ""):
            refused(lambda field=field, text=text: store.create_proposal(replace(asked(), **{field: text})), field)  # type: ignore[misc]
    for field in ("tenant_ref", "actor_ref", "thread_id"):
        scope = replace(MINE, **{field: long})
        refused(lambda scope=scope: made(store, scope=scope), field)  # type: ignore[misc]
        refused(lambda scope=scope: store.list_proposals(scope), f"list by {field}")  # type: ignore[misc]
    made(store, "taken", OTHERS[0])
    refused(lambda: store.create_proposal(asked("taken", tool_name="")), "a malformed replay")


@case(PROPOSAL_CONTRACT, "14 limits and decisions that are none are rejected")
def _limits(subject: StoreSubject) -> None:
    store = subject.store
    made(store)
    for limit in (0, -1, 0.5, 1001, math.nan, math.inf, None, "1", True):
        refused(lambda limit=limit: store.list_proposals(MINE, limit=limit), f"limit {limit}")  # type: ignore[misc]
    for word in ("", "Pending", "maybe", 1):
        refused(lambda word=word: store.list_proposals(MINE, decision=word), f"decision {word}")  # type: ignore[misc]
    same(len(store.list_proposals(MINE, limit=1000)), 1, "the largest page")


@case(PROPOSAL_CONTRACT, "16 a context that says who acts, or is none, is rejected and not stored")
def _context(subject: StoreSubject) -> None:
    store = subject.store
    bad: tuple[Any, ...] = (
        None,
        [],
        {},
        {"agentName": "support"},
        {"requestId": ""},
        {"requestId": None},
        *({"requestId": "r", key: "x"} for key in ("actor", "roles", "tenant", "tenantRef", "host", "other")),
        {"requestId": "r", "agentName": ""},
        {"requestId": "r", "persona": ""},
        {"requestId": "r", "pageContext": "page"},
        {"requestId": "r", "pageContext": {"x": math.nan}},
        {"requestId": "r", "uiCapabilities": []},
    )
    for context in bad:
        refused(lambda context=context: made(store, execution_context=context), f"{context}")  # type: ignore[misc]
    same(store.find_proposal("p1"), None, "the row")
    full = {"requestId": "r", "agentName": "a", "persona": "p", "pageContext": {"x": 1}, "uiCapabilities": {}}
    same(made(store, execution_context=full).asked.execution_context, full, "every field")
