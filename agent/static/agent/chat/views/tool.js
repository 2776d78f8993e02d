// A tool call as people read it: what was done, with what, and how it went; the details are folded.

import { make } from "../dom.js";
import { humanise, say } from "../words.js";
import { shownValue } from "./value.js";

const WORDS = {
  running: "tool_running",
  done: "tool_done",
  failed: "tool_failed",
  denied: "tool_denied",
  waiting: "tool_waiting",
  unfinished: "tool_unfinished",
};
const SHORT = 40;

export class ToolView {
  constructor(name) {
    this.name = name;
    this.about = make("span", { className: "agent-tool-about" });
    this.status = make("span", { className: "agent-tool-status" });
    this.details = make("div", { className: "agent-tool-details", tabIndex: 0 });
    this.note = make("p", { className: "agent-tool-note", dir: "auto", hidden: true });
    const title = make("span", { className: "agent-tool-name" }, humanise(name));
    const summary = make("summary", {}, title, " ", this.about, " · ", this.status);
    this.element = make("div", { className: "agent-tool" }, make("details", {}, summary, this.details), this.note);
    this.state("running");
  }

  state(state) {
    this.element.dataset.state = state;
    this.status.textContent = say(WORDS[state]);
  }

  input(input) {
    this.about.textContent = short(input);
    this.#detail("input", "tool_input", input);
  }

  output(output) {
    this.state("done");
    this.#detail("output", "tool_output", output);
  }

  error(error, state = "failed") {
    this.state(state);
    if (error) this.#detail("error", "tool_error", error);
  }

  /** The tool's own words for people; none takes them back. */
  present(text) {
    this.note.textContent = text;
    this.note.hidden = !text;
  }

  #detail(name, word, value) {
    this.details.querySelector(`[data-detail="${name}"]`)?.remove();
    this.details.append(
      make("div", { data: { detail: name } }, make("p", { className: "agent-tool-word" }, say(word)), shownValue(value)),
    );
  }
}

/** The few short values a call was made with, as in `Look up order 1042`. */
function short(input) {
  if (input === null || typeof input !== "object") return "";
  const values = Object.values(input).filter((value) => ["string", "number"].includes(typeof value) && value !== "");
  const text = values.slice(0, 2).join(", ");
  return text.length > SHORT ? `${text.slice(0, SHORT - 1)}…` : text;
}
