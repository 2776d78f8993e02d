// What the reader wrote.

import { button, make } from "../dom.js";
import { carried } from "../files.js";
import { say } from "../words.js";

export class OwnView {
  /** `on.edit(message)`; a message that is not stored yet has no acts. */
  constructor(text, on, files = []) {
    this.on = on;
    this.state = make("span", { className: "agent-own-state" });
    this.foot = make("div", { className: "agent-acts" }, this.state);
    this.element = make(
      "li",
      { className: "agent-message agent-own" },
      make("p", { className: "agent-unseen" }, say("you_said")),
      make("div", { className: "agent-own-text", dir: "auto" }, text, carried(files)),
      this.foot, // shown at the side of the text
    );
  }

  /** `sending`, `queued`, or nothing. */
  mark(state) {
    this.state.textContent = state ? say(state) : "";
  }

  stored(message) {
    this.foot.append(button(say("edit"), () => this.on.edit(message)));
    return this;
  }
}
