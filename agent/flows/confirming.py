"""The gate of a confirmed tool: a preview with a token first, the same call with the token then (spec 07 §5).

For callers that cannot wait for a person: a tool server, an API of the site, a model without anybody beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from pydantic import BaseModel

from agent.conf import agent_settings
from agent.domain.clock import epoch_ms, wire_time
from agent.domain.confirm_tokens import Claim, hash_of
from agent.errors import ConfirmTokenError
from agent.flows import host_code
from agent.registry import CONFIRM_FIELDS, ToolContext, ToolDefinition
from agent.store import get_store, in_store
from agent.store.companions import token_store

Hook = Callable[[Any, ToolContext], object]


async def gated(tool: ToolDefinition, given: BaseModel, ctx: ToolContext) -> object:
    """The preview with its token; with `confirm` and that token the outcome of `commit`.

    Raises `ConfirmTokenError`: `invalid` before anything of the tool runs, `used` right before its commit.
    """
    asked = given.model_copy(update={"confirm": False, "confirmToken": None})
    claim = Claim(
        tool=tool.name,
        actor_ref=ctx.actor.ref,
        tenant_ref=ctx.actor.tenant_ref,
        arguments=given.model_dump(mode="json", exclude=set(CONFIRM_FIELDS)),
    )
    if not is_confirming(given):
        return _previewed(claim, await _called(tool.prepare, asked, ctx, runs_async=tool.prepares_async))
    token = str(getattr(given, "confirmToken", None) or "")
    expires_at_ms = claim.expiry(agent_settings().confirm_token_secret, token, epoch_ms(get_store().clock()))
    if expires_at_ms is None:
        raise ConfirmTokenError("invalid")
    await _called(tool.prepare, asked, ctx, runs_async=tool.prepares_async)  # what it refuses spends no token
    if not await in_store(_claimed, claim, token, expires_at_ms):
        raise ConfirmTokenError("used")
    try:
        return await _called(tool.body, asked, ctx, runs_async=tool.runs_async)
    except Exception:  # a commit that was broken off may still be at work: its token stays spent
        await in_store(_released, token)
        raise


def is_confirming(given: BaseModel) -> bool:
    """Whether this is the second call."""
    return bool(getattr(given, "confirm", False))


def _previewed(claim: Claim, preview: object) -> dict[str, object]:
    settings = agent_settings()
    expires_at = get_store().clock() + timedelta(seconds=settings.confirm_token_seconds)
    token = claim.token(settings.confirm_token_secret, epoch_ms(expires_at))
    return {"preview": preview, "confirmToken": token, "expiresAt": wire_time(expires_at)}


async def _called(hook: Hook | None, asked: BaseModel, ctx: ToolContext, *, runs_async: bool) -> object:
    assert hook is not None
    done = await host_code.ended(partial(hook, asked, ctx), _same, runs_async=runs_async)
    if isinstance(done, BaseException):
        raise done
    return done


def _same(answer: object) -> object:
    return answer


def _claimed(claim: Claim, token: str, expires_at_ms: int) -> bool:
    """Use the token up; a store that cannot remember lets it be used until it expires."""
    kept = token_store(get_store())
    return kept is None or kept.claim_token(hash_of(token), claim.actor_ref, claim.tool, expires_at_ms)


def _released(token: str) -> None:
    kept = token_store(get_store())
    if kept is not None:
        kept.release_token(hash_of(token))
