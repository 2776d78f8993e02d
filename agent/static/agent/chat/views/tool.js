// A tool call as people read it: what was done, with what, and how it went; the details are folded.

import { make } from "../dom.js";
import { humanise, say } from "../words.js";
import { CardView } from "./card.js";
import { QuestionsView } from "./questions.js";
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
    this.given = input;
    this.about.textContent = short(input);
    this.#detail("input", "tool_input", input);
  }

  output(output) {
    this.state("done");
    this.said = output?.text;
    if (this.questions) this.questions.settle(answered(output));
    else if (this.name === "ask") this.present(answered(output));
    this.#detail("output", "tool_output", output);
  }

  error(error, state = "failed") {
    this.state(state);
    this.questions?.settle(state === "denied" ? say("card_expired") : "");
    if (error) this.#detail("error", "tool_error", error);
  }

  /** Somebody has to decide. A second copy of the same card changes nothing. */
  ask(card, decide) {
    if (this.card) return;
    this.state("waiting");
    this.card = new CardView(card, { name: humanise(this.name), input: this.given, decide });
    this.note.before(this.card.element);
  }

  /** The reader is asked something. */
  question(id, request, decide) {
    if (this.questions) return;
    this.state("waiting");
    this.questions = new QuestionsView(id, request, decide);
    this.note.before(this.questions.element);
  }

  decided(settled) {
    this.card?.settle(settled);
    this.state(settled.status === "approved" ? "running" : "denied");
  }

  /** What another agent has answered, where its work is not shown. */
  told() {
    if (this.said) this.present(this.said);
  }

  /** Another agent is at work on this. */
  work(element) {
    element.classList.add("agent-delegate");
    this.note.before(element);
  }

  /** Nothing more comes. */
  over() {
    if (this.card && !this.card.status && !this.card.target) this.card.settle({ status: "failed" });
    if (this.questions && !this.questions.over) this.questions.settle();
    if (["running", "waiting"].includes(this.element.dataset.state)) this.state("unfinished");
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

/** How questions were answered, in the words of the questions. */
function answered({ skipped, summary } = {}) {
  return skipped ? `${say("ask_skipped")}\n${summary}` : (summary ?? "");
}

/** The few short values a call was made with, as in `Look up order 1042`. */
function short(input) {
  if (input === null || typeof input !== "object") return "";
  const values = Object.values(input).filter((value) => ["string", "number"].includes(typeof value) && value !== "");
  const text = values.slice(0, 2).join(", ");
  return text.length > SHORT ? `${text.slice(0, SHORT - 1)}…` : text;
}
