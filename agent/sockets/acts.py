"""What each message of a socket does: one flow, and what is said about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from rest_framework.exceptions import Throttled

from agent.api.base import ActorAPIView
from agent.api.parsing import idempotency_key
from agent.api.sending import send_of
from agent.api.views import decisions, proposals
from agent.api.views.chat import CancelView, ChatView, StreamView, still_there
from agent.api.views.threads import ThreadView
from agent.domain.actor import Actor
from agent.errors import NotSupported
from agent.flows.admission import Queued, submit
from agent.flows.cancel import cancel
from agent.flows.stream import attach
from agent.flows.text_decisions import Decided
from agent.flows.threads import check_own
from agent.sockets import wire
from agent.sockets.follows import RUNS_MAX
from agent.sockets.messages import Asked
from agent.sockets.watches import THREADS_MAX

if TYPE_CHECKING:
    from agent.sockets.session import Socket

KEY: Final = "idempotencyKey"


async def act(socket: Socket, asked: Asked) -> None:
    """Carry the message out and answer it; what a flow raises passes."""
    await ACTS[asked.kind](socket, asked)


async def _send(socket: Socket, asked: Asked) -> None:
    key = idempotency_key(asked.body.get(KEY), KEY)
    send = send_of({name: value for name, value in asked.body.items() if name != KEY}, key=key)
    _refuse_more(socket.follows.full, RUNS_MAX, "followed runs")
    outcome = await socket.ask(ChatView, "POST", submit, send)
    if isinstance(outcome, Queued):
        await socket.send(wire.told("queued", asked.ref, outcome.to_json()))
        return
    if isinstance(outcome, Decided):
        await socket.send(wire.told("decision", asked.ref, outcome.to_json()))
        return
    meta = wire.say("meta", ref=asked.ref, runId=outcome.run_id, threadId=outcome.thread_id)
    if outcome.replayed and not await socket.ask(StreamView, "GET", still_there, outcome.run_id):
        await socket.send(meta)
        await socket.send(wire.say("done", runId=outcome.run_id))
    else:
        await socket.follows.begin(outcome.run_id, 0, meta)


async def _cancel(socket: Socket, asked: Asked) -> None:
    aborted = await socket.ask(CancelView, "POST", cancel, asked.values["runId"])
    await _ok(socket, asked, {"aborted": aborted})


async def _decide(socket: Socket, asked: Asked) -> None:
    """About a call, or a proposal; `ok` with the body that HTTP answers."""
    known = (PROPOSALS if "proposalId" in asked.values else CALLS).get(asked.kind)
    if known is None:
        raise NotSupported
    view, decide = known
    await _ok(socket, asked, await socket.ask(view, "POST", decide, asked.values))


async def _attach(socket: Socket, asked: Asked) -> None:
    run_id = asked.values["runId"]
    _refuse_more(socket.follows.full and run_id not in socket.follows, RUNS_MAX, "followed runs")
    scope = await socket.ask(StreamView, "GET", attach, run_id)
    meta = wire.say("meta", ref=asked.ref, runId=run_id, threadId=scope.thread_id)
    await socket.follows.begin(run_id, asked.values["after"], meta)


async def _detach(socket: Socket, asked: Asked) -> None:
    await socket.follows.end(asked.values["runId"])
    await _ok(socket, asked)


async def _watch(socket: Socket, asked: Asked) -> None:
    thread_id = asked.values["threadId"]
    _refuse_more(socket.watches.full and thread_id not in socket.watches.thread_ids, THREADS_MAX, "watched threads")
    await socket.ask(ThreadView, "GET", check_own, thread_id)
    await socket.watches.begin(thread_id)
    await _ok(socket, asked)


async def _unwatch(socket: Socket, asked: Asked) -> None:
    socket.watches.end(asked.values["threadId"])
    await _ok(socket, asked)


async def _ping(socket: Socket, asked: Asked) -> None:
    await socket.send(wire.say("pong", ref=asked.ref))


async def _ok(socket: Socket, asked: Asked, body: Mapping[str, object] | None = None) -> None:
    await socket.send(wire.say("ok", ref=asked.ref, body=body))


def _refuse_more(full: bool, limit: int, of: str) -> None:
    if full:
        raise Throttled(detail=f"A socket may have {limit} {of}: let one go first.")


Decide = Callable[[Actor, Mapping[str, Any]], Mapping[str, Any]]

CALLS: Final[Mapping[str, tuple[type[ActorAPIView], Decide]]] = {
    "approve": (decisions.ApproveView, decisions.approve),
    "reject": (decisions.RejectView, decisions.reject),
    "answer": (decisions.AnswerView, decisions.answer),
    "skip": (decisions.SkipView, decisions.skip),
}
PROPOSALS: Final[Mapping[str, tuple[type[ActorAPIView], Decide]]] = {
    "approve": (proposals.ProposalApproveView, proposals.approve),
    "reject": (proposals.ProposalRejectView, proposals.reject),
}

ACTS: Final[Mapping[str, Callable[[Socket, Asked], Awaitable[None]]]] = {
    "send": _send,
    "cancel": _cancel,
    "approve": _decide,
    "reject": _decide,
    "answer": _decide,
    "skip": _decide,
    "attach": _attach,
    "detach": _detach,
    "watch": _watch,
    "unwatch": _unwatch,
    "ping": _ping,
}
