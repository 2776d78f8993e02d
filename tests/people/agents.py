"""What the host declares."""

from agent import ToolContext, agent, tool


@tool(permission="people.look")
def whoami(ctx: ToolContext) -> str:
    """Who is asking."""
    return f"{ctx.actor.ref} of {ctx.actor.tenant_ref}"


@agent(prompt="You help.", tools=[whoami])
class Desk:
    """The desk."""
