// One model call: what it thought, what it said, the tools it used. Grows by frames, or is filled from a stored message.

import { make } from "../dom.js";
import { RichText } from "../richtext.js";
import { say } from "../words.js";
import { ToolView } from "./tool.js";

export class StepView {
  /** `decide(choice, body)` sends a decision about a call. */
  constructor({ decide } = {}) {
    this.decide = decide;
    this.element = make("div", { className: "agent-step" });
    this.clear();
  }

  /** Back to nothing: the model is asked again. */
  clear() {
    this.element.replaceChildren();
    this.tools = new Map();
    this.components = new Map();
    this.thoughts = null;
    this.rich = null;
  }

  get text() {
    return this.rich?.text ?? "";
  }

  appendText(delta) {
    if (!this.rich) {
      const body = make("div", { className: "agent-text-body" });
      // Text belongs before the tools it announces.
      this.element.insertBefore(body, this.element.querySelector(".agent-tool"));
      this.rich = new RichText(body);
    }
    this.rich.append(delta);
  }

  appendReasoning(delta) {
    if (!this.thoughts) {
      const text = make("p", { dir: "auto" }, document.createTextNode(""));
      const summary = make("summary", {}, say("thinking"));
      this.element.prepend(make("details", { className: "agent-thoughts" }, summary, text));
      this.thoughts = { summary, text };
    }
    this.thoughts.text.firstChild.appendData(delta);
  }

  /** The step is over; unfinished tools stay as they are, their results come later. */
  finish({ reasoningMs } = {}) {
    this.rich?.flush();
    if (!this.thoughts) return;
    const seconds = Math.round((reasoningMs ?? 0) / 1000);
    this.thoughts.summary.textContent = seconds ? say("thought_seconds", { seconds }) : say("thought");
  }

  tool(id, name) {
    let view = this.tools.get(id);
    if (!view && name) {
      view = new ToolView(name);
      this.tools.set(id, view);
      this.element.append(view.element);
    }
    return view;
  }

  /** Everything of a stored assistant message. */
  fill(message) {
    if (message.reasoning) this.appendReasoning(message.reasoning);
    if (message.content) this.appendText(message.content);
    for (const call of message.toolCalls ?? []) this.tool(call.id, call.name).input(call.input);
    for (const result of message.toolResults ?? []) this.#result(result);
    for (const call of message.toolCalls ?? []) if (call.kind === "agent") this.tool(call.id).told();
    for (const component of message.ui ?? []) this.component(component);
    for (const view of this.tools.values()) if (view.element.dataset.state === "running") view.state("unfinished");
    for (const approval of message.approvals ?? []) this.#card(approval);
    this.finish(message);
    return this;
  }

  /** A component in words: this page draws none, so it says what the component says of itself. Empty props withdraw it. */
  component({ id, component, props = {}, fallbackText = "", toolCallId }, tool = this.tools.get(toolCallId)) {
    const withdrawn = Object.keys(props).length === 0;
    const text = withdrawn ? "" : component === "text" ? (props.text ?? fallbackText) : fallbackText;
    if (tool) {
      tool.present(text);
      return;
    }
    const known = this.components.get(id) ?? make("p", { className: "agent-tool-note", dir: "auto" });
    this.components.set(id, known);
    known.textContent = text;
    if (text) this.element.append(known);
    else known.remove();
  }

  /** The card as it was left; how the call went stays as its result says. */
  #card(approval) {
    const view = this.tools.get(approval.id);
    if (!view) return;
    const { state } = view.element.dataset;
    if (view.name === "ask") {
      if (approval.status === "pending") view.question(approval.id, view.given, this.decide);
      return;
    }
    view.ask(approval, this.decide);
    if (approval.status === "pending") return;
    view.card.settle(approval);
    view.state(state);
  }

  #result({ id, name, output, error, denied, expired }) {
    const view = this.tool(id, name);
    if (denied || expired) view.error(error ?? output?.reason, "denied");
    else if (error) view.error(error);
    else view.output(output);
  }
}
