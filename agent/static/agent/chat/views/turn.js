// Everything an agent did for one question: steps, then what the reader may do with the answer.

import { button, make } from "../dom.js";
import { humanise, say } from "../words.js";
import { StepView } from "./step.js";

const OPENING = new Set(["step-start", "tool-input-available"]); // what the stream of a turn may begin with
const UNFINISHED = { cancelled: "stopped", failed: "answer_failed" }; // the words for a run that did not complete

export class TurnView {
  /** `on`: again(message), ask(text), branch(message), feedback(message, value), decide(choice, body). */
  constructor({ agent, on }) {
    this.agent = agent;
    this.on = on;
    this.steps = [];
    this.asked = 0; // steps that are a model call: what an agent asks first is a step of none
    this.calls = new Map(); // tool views by id, over all steps
    this.waiting = make("p", { className: "agent-waiting" }, say("waiting"));
    this.body = make("div", { className: "agent-turn-body" });
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
    const bodies = this.body.querySelectorAll(".agent-text-body");
    return bodies[bodies.length - 1]?.textContent.trim() ?? "";
  }

  /** Take one frame of the stream; kinds that are not known are passed over. Answers what a listener should hear. */
  frame(frame) {
    if (this.stored && OPENING.has(frame.kind)) this.#unstored();
    const handler = HANDLERS[frame.kind];
    return handler ? (handler(this, frame) ?? "") : "";
  }

  /** The stream is over. */
  end({ cancelled = false } = {}) {
    for (const step of this.steps) step.finish();
    this.waiting.remove();
    for (const view of this.calls.values()) view.over();
    if (cancelled) this.#hint(say("stopped"));
  }

  /** Everything of the run's stored assistant messages. */
  fill(messages) {
    this.waiting.remove();
    for (const message of messages) {
      const step = new StepView(this.on).fill(message);
      this.steps.push(step);
      this.body.append(step.element);
    }
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
      const step = new StepView(this.on).fill(message);
      this.steps.push(step);
      this.body.append(step.element);
      for (const [id, view] of step.tools) this.calls.set(id, view);
    }
    this.#wait(false);
  }

  // The stream tells it all again.
  #unstored() {
    this.stored = false;
    this.steps = [];
    this.asked = 0;
    this.calls.clear();
    this.body.replaceChildren();
  }

  get step() {
    return this.steps.at(-1) ?? this.openStep();
  }

  /** A model is called. */
  callStep() {
    this.asked += 1;
    return this.openStep();
  }

  openStep() {
    this.steps.at(-1)?.finish();
    const step = new StepView(this.on);
    this.steps.push(step);
    this.body.append(step.element);
    this.#wait(true);
    return step;
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

const HANDLERS = {
  "step-start": (turn) => void turn.callStep(),
  "step-restart": (turn, { step }) => {
    if (step >= turn.asked) return void turn.callStep(); // its first worker was gone before it had opened it
    for (const id of turn.step.tools.keys()) turn.calls.delete(id);
    turn.step.clear();
  },
  text: (turn, frame) => {
    turn.heard();
    turn.step.appendText(frame.text);
  },
  reasoning: (turn, frame) => {
    turn.heard();
    turn.step.appendReasoning(frame.text);
  },
  "tool-input-start": (turn, frame) => {
    turn.heard();
    turn.calls.set(frame.id, turn.step.tool(frame.id, frame.name));
    return `${humanise(frame.name)}: ${say("tool_running")}`;
  },
  "tool-input-available": (turn, frame) => {
    turn.heard();
    if (!turn.calls.has(frame.id)) turn.calls.set(frame.id, turn.step.tool(frame.id, frame.name));
    turn.calls.get(frame.id).input(frame.input);
  },
  "approval-requested": (turn, frame) => {
    const call = turn.calls.get(frame.id);
    call?.ask(frame, turn.on.decide);
    turn.step.finish();
    return call ? say("card_asks", { title: call.card.title }) : "";
  },
  elicitation: (turn, frame) => {
    const call = turn.calls.get(frame.id);
    call?.question(frame.id, frame.request, turn.on.decide);
    turn.step.finish();
    return call ? call.questions.title : "";
  },
  "approval-settled": (turn, frame) => turn.calls.get(frame.id)?.decided(frame),
  "tool-output": (turn, frame) => turn.calls.get(frame.id)?.output(frame.output),
  "tool-output-error": (turn, frame) => turn.calls.get(frame.id)?.error(frame.error),
  "tool-output-denied": (turn, frame) => turn.calls.get(frame.id)?.error(frame.reason, "denied"),
  ui: (turn, frame) => {
    turn.heard();
    turn.step.component(frame, turn.calls.get(frame.toolCallId));
  },
  "step-finish": (turn, frame) => turn.step.finish(frame),
};
