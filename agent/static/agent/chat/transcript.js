// Stored messages as they are shown: what the agent did for one question stands together.

import { OwnView } from "./views/own.js";
import { TurnView } from "./views/turn.js";

const AT_ONCE = 60;

/** Shows a conversation's stored messages in a list, the newest first; older ones are built when they are asked for. */
export class Transcript {
  /** `context`: agentLabel(name) and the acts of messages. */
  constructor(list, earlier, context) {
    this.list = list;
    this.earlier = earlier;
    this.context = context;
    this.rest = [];
    earlier.addEventListener("click", () => this.#more());
  }

  clear() {
    this.rest = [];
    this.list.replaceChildren();
    this.earlier.hidden = true;
  }

  /** Of the run that is still going its own stream will tell, from the first frame on. */
  show(messages, activeRunId) {
    this.clear();
    this.rest = grouped(messages).filter(
      ([first]) => first.role !== "system" && !(first.role === "assistant" && first.runId && first.runId === activeRunId),
    );
    this.#more();
  }

  /** The list items of these messages alone. */
  items(messages) {
    return grouped(messages).map((group) => item(group, this.context));
  }

  /** Cards that somebody has decided meanwhile are shown as decided. */
  renew(messages) {
    for (const group of grouped(messages)) {
      const decided = group.flatMap(({ approvals = [] }) => approvals).filter(({ status }) => status !== "pending");
      const shown = this.list.querySelector(`[data-message="${CSS.escape(group[0].id)}"]`);
      const open = decided.some(({ id }) => shown?.querySelector(`[data-card="${CSS.escape(id)}"]:not([data-status])`));
      if (open) shown.replaceWith(item(group, this.context));
    }
  }

  #more() {
    const log = this.list.closest("[data-log]");
    const below = log.scrollHeight - log.scrollTop;
    this.list.prepend(...this.rest.splice(-AT_ONCE).map((group) => item(group, this.context)));
    this.earlier.hidden = this.rest.length === 0;
    log.scrollTop = log.scrollHeight - below; // what was read stays where it was
  }
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

function item(group, { agentLabel, acts }) {
  const [first] = group;
  const view =
    first.role === "user"
      ? new OwnView(first.content, acts, first.attachments).stored(first)
      : new TurnView({ agent: agentLabel(group.at(-1).agentName), on: acts }).fill(group);
  view.element.dataset.message = first.id;
  return view.element;
}
