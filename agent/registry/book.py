"""The book of everything that is declared: agents, tools and personas by name, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from agent.domain.questions import ASK
from agent.registry.declared import Origin
from agent.registry.definitions import ALL, UNNAMED, AgentDefinition, PersonaDefinition, ToolDefinition
from agent.registry.names import NAME_RULE, is_name


class Registry:
    """One site's declarations. Mistakes are collected, so that one check can show them all."""

    def __init__(self) -> None:
        self._tools: dict[str, ToolDefinition] = {}
        self._agents: dict[str, AgentDefinition] = {}
        self._personas: dict[str, PersonaDefinition] = {}
        self._refused: dict[tuple[str, str, Origin], str] = {}
        self._methods: set[Origin] = set()

    # ---- declaring -------------------------------------------------------------------------------------------------

    def add_tool(self, definition: ToolDefinition) -> None:
        taken = self._tools.get(definition.name)
        if self._admit("tool", definition.name, definition.origin, taken.origin if taken else None):
            self._tools[definition.name] = definition

    def add_agent(self, definition: AgentDefinition) -> None:
        name = definition.name or ""
        taken = self._agents.get(name)
        if self._admit("agent", name, definition.origin, taken.origin if taken else None):
            self._agents[name] = definition

    def add_persona(self, definition: PersonaDefinition) -> None:
        for name in (definition.id, *definition.aliases):
            taken = self._personas.get(name)
            if self._admit("persona", name, definition.origin, taken.origin if taken else None):
                self._personas[name] = definition

    def _admit(self, kind: str, name: str, origin: Origin, taken: Origin | None) -> bool:
        """A name is taken once; the same place in a module that is imported again declares itself anew."""
        if kind == "tool" and name == ASK:
            text = f"tool name {name!r} ({origin}): this name is a built-in tool's."
        elif not is_name(name):
            text = f"{kind} name {name!r} ({origin}): names are {NAME_RULE}."
        elif taken is not None and (taken != origin or origin.is_local):
            text = f"{kind} name {name!r} is declared twice: {taken} and {origin}."
        else:
            return True
        self._refused[kind, name, origin] = text[0].upper() + text[1:]
        return False

    def expect_method(self, origin: Origin) -> None:
        """A method that is marked as a tool waits for its class to be declared as an agent."""
        self._methods.add(origin)

    def claim_method(self, origin: Origin) -> None:
        self._methods.discard(origin)

    # ---- reading ---------------------------------------------------------------------------------------------------

    def tool(self, name: str) -> ToolDefinition | None:
        """The usable tool of that name."""
        found = self._tools.get(name)
        return found if found and not found.problems else None

    def tools(self) -> tuple[ToolDefinition, ...]:
        """All usable tools, in the order of their declaration."""
        return tuple(each for each in self._tools.values() if not each.problems)

    def agent(self, name: str) -> AgentDefinition | None:
        return self._agents.get(name)

    def definition(self, name: str | None) -> AgentDefinition:
        """Today's declaration; the unnamed default where none is named, or where it was removed."""
        return (self._agents.get(name) if name is not None else None) or UNNAMED

    def agents(self) -> tuple[AgentDefinition, ...]:
        return tuple(self._agents.values())

    def persona(self, name: str) -> PersonaDefinition | None:
        """By id or alias."""
        return self._personas.get(name)

    def tools_of(self, agent: AgentDefinition) -> tuple[ToolDefinition, ...]:
        """The agent's own list (gate 1): its methods, and what its `tools` say."""
        named = {each.name: each for each in (*agent.methods, *self._listed(agent))}
        return tuple(each for name, each in named.items() if self.tool(name) is each)

    def _listed(self, agent: AgentDefinition) -> Iterator[ToolDefinition]:
        if agent.tools is None:
            # a method belongs to its agent; who else wants it names it
            yield from (each for each in self.tools() if each.owner is None and each.origin.app == agent.origin.app)
        elif isinstance(agent.tools, str):
            yield from self.tools() if agent.tools == ALL else ()
        else:
            found = (self._referenced(each) for each in agent.tools)
            yield from (each for each in found if each is not None)

    def _referenced(self, reference: object) -> ToolDefinition | None:
        if isinstance(reference, str):
            return self._tools.get(reference)
        # own attribute: an undecorated subclass of a tool is not that tool
        definition = getattr(reference, "__dict__", {}).get("__agent_tool__")
        return definition if isinstance(definition, ToolDefinition) else None

    def makes_proposals(self, project_mode: str) -> bool:
        """Whether an action may become a proposal: by what the project says, an agent or a tool."""
        tools, agents = (tool.approval_mode for tool in self.tools()), (each.approval_mode for each in self.agents())
        return "independent" in {project_mode, *tools, *agents}

    def personas_of(self, agent: AgentDefinition) -> tuple[PersonaDefinition, ...]:
        """The agent's personas, in the order that it lists them."""
        found = (self._referenced_persona(each) for each in agent.personas)
        return tuple(each for each in found if each is not None)

    def default_persona_of(self, agent: AgentDefinition) -> PersonaDefinition | None:
        return None if agent.default_persona is None else self._referenced_persona(agent.default_persona)

    def _referenced_persona(self, reference: object) -> PersonaDefinition | None:
        if isinstance(reference, PersonaDefinition):
            return reference
        return self.persona(reference) if isinstance(reference, str) else None

    # ---- what is wrong ---------------------------------------------------------------------------------------------

    def problems(self) -> list[str]:
        """Everything that is wrong with the declarations, one sentence each."""
        declared: list[ToolDefinition | AgentDefinition] = [*self._tools.values(), *self._agents.values()]
        return [
            *self._refused.values(),
            *(text for each in declared for text in each.problems),
            *(text for each in self._agents.values() for text in self._reference_problems(each)),
            *(f"Tool {each}: a method is a tool only in a class that @agent declares." for each in self._methods),
        ]

    def _reference_problems(self, agent: AgentDefinition) -> Iterator[str]:
        tools = agent.tools if isinstance(agent.tools, tuple) else ()
        for reference in tools:
            found = self._referenced(reference)
            if found is None or self._tools.get(found.name) is not found:
                yield f"Agent {agent.name!r} ({agent.origin}): unknown tool {_shown(reference)}."
        for reference in (*agent.personas, *([agent.default_persona] if agent.default_persona else [])):
            found_persona = self._referenced_persona(reference)
            if found_persona is None or self.persona(found_persona.id) is not found_persona:
                yield f"Agent {agent.name!r} ({agent.origin}): unknown persona {_shown(reference)}."
        for text in self._handoff_problems(agent):
            yield f"Agent {agent.name!r} ({agent.origin}): {text}."

    def _handoff_problems(self, agent: AgentDefinition) -> Iterator[str]:
        taken = {tool.name for tool in self.tools_of(agent)}
        for handoff in agent.handoffs:
            if handoff.agent == agent.name:
                yield "it hands off to itself"
            elif self.agent(handoff.agent) is None:
                yield f"unknown agent {handoff.agent!r}"
            if handoff.tool_name in taken:
                yield f"two of its tools have the name {handoff.tool_name!r}"
            if not is_name(handoff.tool_name):
                yield f"the tool name {handoff.tool_name!r} is too long: names are {NAME_RULE}"
            taken.add(handoff.tool_name)


def _shown(reference: object) -> str:
    return repr(reference if isinstance(reference, str) else getattr(reference, "__qualname__", reference))


registry = Registry()  # the declarations of this site


@contextmanager
def isolated_registry() -> Iterator[Registry]:
    """An empty book for as long as a test needs one."""
    kept = dict(vars(registry))
    vars(registry).update(vars(Registry()))
    try:
        yield registry
    finally:
        vars(registry).update(kept)
