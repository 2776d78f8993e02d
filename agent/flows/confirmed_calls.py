"""A confirmed tool called outside of any turn: by an API of the site, or by a tool server."""

from __future__ import annotations

from agent.db import in_db
from agent.domain.actor import Actor
from agent.domain.arguments import kept_arguments
from agent.domain.ids import new_id
from agent.domain.model_calls import Json
from agent.errors import ConfirmTokenError, Invalid, NotFound, ToolError
from agent.flows.gates import open_tools
from agent.flows.tools import execute
from agent.registry import InvalidInput, OfferContext, ToolContext, registry
from agent.store import get_store


async def call_confirmed(actor: Actor, name: str, arguments: Json) -> Json:
    """Call it once for a preview and its token, and with `confirm` and `confirmToken` beside the same arguments again.

    Its gates are asked as in a turn. Raises `NotFound` for a tool that is not confirmed, unknown or closed to the
    actor, `Invalid`, `ConfirmTokenError`, and `ToolError` with what a model would have been told.
    """
    tool = registry.tool(name)
    if (
        tool is None
        or not tool.confirmed
        or not await in_db(open_tools, [tool], OfferContext(actor=actor, agent_name=None))
    ):
        raise NotFound
    try:
        given = tool.parse(kept_arguments(arguments))
    except InvalidInput as error:
        raise Invalid(error.message, code=error.code) from error
    ctx = ToolContext(actor=actor, thread_id="", run_id="", tool_call_id=new_id(), store=get_store())
    result = await execute(tool, given, ctx)
    if result.error is None:
        return result.output
    of_token = {each.code: each for each in (ConfirmTokenError("invalid"), ConfirmTokenError("used"))}
    raise of_token.get(result.error_code or "") or ToolError(result.error, code=result.error_code)
