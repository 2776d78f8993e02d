"""The agent that asks first, and a model that says what it was told."""

from agent import agent
from agent.domain.model_calls import ModelRequest
from agent.providers.scripted import ScriptedProvider, ScriptedReply


@agent(
    name="hotel",
    tools=[],
    intake={
        "preamble": "Two things before we begin.",
        "questions": [
            {"id": "nights", "prompt": "How many nights?", "input": {"type": "number", "required": True, "min": 1}},
            {
                "id": "board",
                "prompt": "With breakfast?",
                "options": [{"value": "no", "label": "Room only"}, {"value": "yes", "label": "Breakfast"}],
                "defaults": ["no"],
            },
        ],
    },
)
class Hotel:
    """Books rooms."""

    prompt = "You book rooms."


def _said(request: ModelRequest) -> ScriptedReply:
    answers = request.messages[-1].tool_results[0].output["answers"]
    return ScriptedReply(f"A room for {answers['nights'][0]} nights, breakfast: {answers['board'][0]}.")


model = ScriptedProvider(_said)
