// What an agent does, frame by frame: its steps, and below a call the work of the agent that the call has asked.

import { make } from "../dom.js";
import { humanise, say } from "../words.js";
import { StepView } from "./step.js";

export class Work {
  /** `on`: decide(choice, body), and what a step needs. */
  constructor(on) {
    this.on = on;
    this.steps = [];
    this.asked = 0; // steps that are a model call: what an agent asks first is a step of none
    this.calls = new Map(); // tool views by id, over all steps
    this.delegates = new Map(); // the work of other agents, by the id of the call that asked them
    this.body = make("div", { className: "agent-turn-body" });
  }

  /** Take one frame of the stream; kinds that are not known are passed over. Answers what a listener should hear. */
  frame(frame) {
    const work = frame.parentId ? this.#delegate(frame.parentId) : this;
    const handler = work && HANDLERS[frame.kind];
    return handler ? (handler(work, frame) ?? "") : "";
  }

  /** Nothing more comes. */
  over() {
    for (const step of this.steps) step.finish();
    for (const view of this.calls.values()) view.over();
    for (const work of this.delegates.values()) work.over();
  }

  /** Back to nothing: the stream tells it all again. */
  clear() {
    this.steps = [];
    this.asked = 0;
    this.calls.clear();
    this.delegates.clear();
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
    return this.add(new StepView(this.on));
  }

  add(step) {
    this.steps.push(step);
    this.body.append(step.element);
    return step;
  }

  heard() {}

  // The agents that are asked by those that are asked stand in one list, each below its own call.
  #delegate(callId) {
    const known = this.delegates.get(callId);
    if (known) return known;
    const owner = [this, ...this.delegates.values()].find((work) => work.calls.has(callId));
    if (!owner) return null;
    const work = new Work(this.on);
    this.delegates.set(callId, work);
    owner.calls.get(callId).work(work.body);
    return work;
  }
}

const HANDLERS = {
  "step-start": (work) => void work.callStep(),
  "step-restart": (work, { step }) => {
    if (step >= work.asked) return void work.callStep(); // its first worker was gone before it had opened it
    for (const id of work.step.tools.keys()) work.calls.delete(id);
    work.step.clear();
  },
  text: (work, frame) => {
    work.heard();
    work.step.appendText(frame.text);
  },
  reasoning: (work, frame) => {
    work.heard();
    work.step.appendReasoning(frame.text);
  },
  "tool-input-start": (work, frame) => {
    work.heard();
    work.calls.set(frame.id, work.step.tool(frame.id, frame.name));
    return `${humanise(frame.name)}: ${say("tool_running")}`;
  },
  "tool-input-available": (work, frame) => {
    work.heard();
    if (!work.calls.has(frame.id)) work.calls.set(frame.id, work.step.tool(frame.id, frame.name));
    work.calls.get(frame.id).input(frame.input);
  },
  "approval-requested": (work, frame) => {
    const call = work.calls.get(frame.id);
    call?.ask(frame, work.on.decide);
    work.step.finish();
    return call ? say("card_asks", { title: call.card.title }) : "";
  },
  elicitation: (work, frame) => {
    const call = work.calls.get(frame.id);
    call?.question(frame.id, frame.request, work.on.decide);
    work.step.finish();
    return call ? call.questions.title : "";
  },
  "approval-settled": (work, frame) => work.calls.get(frame.id)?.decided(frame),
  "tool-output": (work, frame) => work.calls.get(frame.id)?.output(frame.output),
  "tool-output-error": (work, frame) => work.calls.get(frame.id)?.error(frame.error),
  "tool-output-denied": (work, frame) => work.calls.get(frame.id)?.error(frame.reason, "denied"),
  ui: (work, frame) => {
    work.heard();
    work.step.component(frame, work.calls.get(frame.toolCallId));
  },
  "step-finish": (work, frame) => work.step.finish(frame),
};
