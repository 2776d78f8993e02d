// Everything an agent did for one question: steps, then what the reader may do with the answer.

import { button, make } from "../dom.js";
import { say } from "../words.js";
import { StepView } from "./step.js";
import { Work } from "./work.js";

const OPENING = new Set(["step-start", "tool-input-available"]); // what the stream of a turn may begin with
const UNFINISHED = { cancelled: "stopped", failed: "answer_failed" }; // the words for a run that did not complete

export class TurnView extends Work {
  /** `on`: again(message), ask(text), branch(message), feedback(message, value), decide(choice, body). */
  constructor({ agent, on }) {
    super(on);
    this.agent = agent;
    this.waiting = make("p", { className: "agent-waiting" }, say("waiting"));
    this.foot = make("div", { className: "agent-acts" });
    this.element = make(
      "li",
      { className: "agent-message agent-turn" },
      make("p", { className: "agent-unseen" }, say("agent_said", { agent })),
      this.body,
      this.waiting,
      this.foot,
    );
  }

  /** The words of the answer: those of the last step that said something. */
  get text() {
    return this.steps.findLast((step) => step.text)?.text ?? "";
  }

  /** The same as it is shown, without the marks that it was written with. */
  get spoken() {
    const bodies = this.body.querySelectorAll(":scope > .agent-step > .agent-text-body");
    return bodies[bodies.length - 1]?.textContent.trim() ?? "";
  }

  frame(frame) {
    if (this.stored && OPENING.has(frame.kind) && !frame.parentId) this.clear();
    return super.frame(frame);
  }

  /** The stream is over. */
  end({ cancelled = false } = {}) {
    this.over();
    this.waiting.remove();
    if (cancelled) this.#hint(say("stopped"));
  }

  /** Everything of the run's stored assistant messages. */
  fill(messages) {
    this.waiting.remove();
    for (const message of messages) this.add(new StepView(this.on).fill(message));
    const answer = messages.at(-1);
    if (answer.runStatus in UNFINISHED) this.#hint(say(UNFINISHED[answer.runStatus]));
    this.foot.append(...this.#acts(answer));
    if (answer.followUps?.length) this.foot.after(this.#followUps(answer.followUps));
    return this;
  }

  /** What is stored of a run whose stream has nothing to tell: it waits for longer than frames are kept. */
  fillOpen(messages) {
    if (this.steps.length) return;
    this.stored = true;
    for (const message of messages) {
      const step = this.add(new StepView(this.on).fill(message));
      for (const [id, view] of step.tools) this.calls.set(id, view);
    }
    this.#wait(false);
  }

  clear() {
    this.stored = false;
    super.clear();
  }

  openStep() {
    this.#wait(true);
    return super.openStep();
  }

  heard() {
    this.#wait(false);
  }

  #hint(text) {
    this.foot.before(make("p", { className: "agent-hint" }, text));
  }

  #wait(yes) {
    this.waiting.hidden = !yes;
  }

  // What may be asked next. Only behind the last answer: the style sheet hides them behind all others.
  #followUps(texts) {
    const list = make("ul", { className: "agent-next", aria: { label: say("ask_next") } });
    list.append(...texts.map((text) => make("li", {}, button(text, () => this.on.ask(text)))));
    return list;
  }

  #acts(message) {
    const acts = [];
    if (navigator.clipboard && message.content) {
      const copy = button(say("copy"), async () => {
        await navigator.clipboard.writeText(message.content);
        copy.textContent = say("copied");
      });
      acts.push(copy);
    }
    acts.push(...this.#thumbs(message));
    // Only the last answer can be given again: the style sheet hides this on all others.
    acts.push(button(say("again"), () => this.on.again(message), { data: { again: "" } }));
    acts.push(button(say("branch"), () => this.on.branch(message)));
    return acts;
  }

  #thumbs(message) {
    const thumbs = ["up", "down"].map((value) =>
      button(say(value), () => this.on.feedback(message, message.feedback?.value === value ? null : value, show), {
        data: { feedback: value },
      }),
    );
    const show = () => {
      for (const thumb of thumbs) {
        thumb.setAttribute("aria-pressed", String(message.feedback?.value === thumb.dataset.feedback));
      }
    };
    show();
    return thumbs;
  }
}
