// Questions to the reader: one form for all of them, with what is assumed if they are skipped.

import { make } from "../dom.js";
import { explain, say } from "../words.js";

const SINGLE = { number: "number", date: "date", email: "email", url: "url" };
let named = 0;

export class QuestionsView {
  /** `decide(choice, body)` sends the answers; it throws what the server refuses. */
  constructor(id, { preamble, questions }, decide) {
    this.id = id;
    this.decide = decide;
    this.fields = questions.map((question) => field(question));
    this.said = make("p", { className: "agent-card-said", role: "status" });
    this.acts = make(
      "div",
      { className: "agent-card-acts" },
      make("button", { type: "submit", className: "agent-button agent-primary" }, say("ask_send")),
      make("button", { type: "button", className: "agent-button", on: { click: () => this.#send("skip") } }, say("ask_skip")),
    );
    this.title = say("ask_title");
    this.element = make(
      "form",
      { className: "agent-card", noValidate: true, aria: { label: this.title }, on: { submit: (event) => this.#submit(event) } },
      preamble ? make("p", { className: "agent-card-detail", dir: "auto" }, preamble) : null,
      ...this.fields.map(({ element }) => element),
      this.acts,
      this.said,
    );
  }

  /** The questions are over; `told` says how they were answered. */
  settle(told = "") {
    this.over = true;
    this.acts.remove();
    for (const { element } of this.fields) element.remove();
    this.element.dataset.status = "settled";
    this.said.textContent = told || say("card_failed");
  }

  #submit(event) {
    event.preventDefault();
    this.#send("answer");
  }

  async #send(choice) {
    const body = { toolCallId: this.id };
    if (choice === "answer") body.answers = Object.fromEntries(this.fields.map(({ id, values }) => [id, values()]));
    for (const { wrong } of this.fields) wrong.textContent = "";
    this.#lock(true);
    this.said.textContent = say("card_sending");
    try {
      await this.decide(choice, body);
      if (!this.over) this.said.textContent = say("ask_sent");
    } catch (error) {
      if (this.over) return;
      for (const { id, wrong } of this.fields) wrong.textContent = error.fields?.[`answers.${id}`]?.join(" ") ?? "";
      this.said.textContent = error.status === 400 ? say("ask_wrong") : explain(error);
      this.#lock(false);
    }
  }

  #lock(yes) {
    for (const control of this.element.elements) control.disabled = yes;
  }
}

function field(question) {
  const { id, prompt, description } = question;
  named += 1;
  const name = `agent-question-${named}`;
  const wrong = make("p", { className: "agent-question-wrong", role: "alert" });
  const { elements, values } = question.options?.length ? choices(question, name) : one(question, name);
  const element = make(
    "fieldset",
    { className: "agent-question" },
    make("legend", { dir: "auto" }, prompt),
    description ? make("p", { className: "agent-card-detail", dir: "auto" }, description) : null,
    ...elements,
    wrong,
  );
  return { id, element, values, wrong };
}

function choices({ options, multiple, defaults = [], allowFreeText }, name) {
  const inputs = options.map(({ value }) =>
    make("input", { type: multiple ? "checkbox" : "radio", name, value, checked: defaults.includes(value) }),
  );
  const labels = inputs.map((input, place) => make("label", { className: "agent-choice" }, input, make("span", { dir: "auto" }, options[place].label)));
  const free = allowFreeText ? make("input", { type: "text", className: "agent-field", aria: { label: say("ask_other") }, placeholder: say("ask_other") }) : null;
  const chosen = () => inputs.filter(({ checked }) => checked).map(({ value }) => value);
  const values = () => {
    const own = free?.value.trim();
    if (!own) return chosen();
    return multiple ? [...chosen(), own] : [own];
  };
  return { elements: [...labels, free], values };
}

function one({ prompt, defaults = [], input = {} }, name) {
  const shared = { name, className: "agent-field", value: defaults[0] ?? "", placeholder: input.placeholder ?? "", aria: { label: prompt } };
  if (input.type === "boolean") {
    const box = make("input", { type: "checkbox", name, checked: defaults[0] === "true" });
    const label = make("label", { className: "agent-choice" }, box, say("yes"));
    return { elements: [label], values: () => [String(box.checked)] };
  }
  const control =
    input.type === "textarea" ? make("textarea", { ...shared, rows: 3 }) : make("input", { type: SINGLE[input.type] ?? "text", ...shared });
  return { elements: [control], values: () => (control.value.trim() ? [control.value] : []) };
}
