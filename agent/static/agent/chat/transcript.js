// Stored messages as they are shown: what the agent did for one question stands together.

import { OwnView } from "./views/own.js";
import { TurnView } from "./views/turn.js";

/** The list items of these messages. Of the run that is still going its own stream will tell, from the first frame on. */
export function transcript(messages, { activeRunId, agentLabel, on }) {
  return grouped(messages)
    .filter(([first]) => first.role !== "system" && !(first.role === "assistant" && first.runId && first.runId === activeRunId))
    .map((group) => item(group, { agentLabel, on }));
}

function grouped(messages) {
  const groups = [];
  for (const message of messages) {
    const last = groups.at(-1)?.at(-1);
    const goesOn = last?.role === "assistant" && message.role === "assistant" && message.runId && last.runId === message.runId;
    if (goesOn) groups.at(-1).push(message);
    else groups.push([message]);
  }
  return groups;
}

function item(group, { agentLabel, on }) {
  const [first] = group;
  const view =
    first.role === "user"
      ? new OwnView(first.content, on).stored(first)
      : new TurnView({ agent: agentLabel(group.at(-1).agentName), on }).fill(group);
  view.element.dataset.message = first.id;
  return view.element;
}
