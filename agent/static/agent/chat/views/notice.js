// Sentences about what happened, with what one can do about it.

import { button, make } from "../dom.js";

export class Notices {
  constructor(place) {
    this.place = place;
  }

  clear() {
    this.place.replaceChildren();
  }

  /** One notice at a time: the newest is the one that counts. `acts` are `[text, onClick]` pairs. */
  show(text, { kind = "error", acts = [] } = {}) {
    const buttons = acts.map(([label, onClick]) => button(label, onClick, { className: "agent-button" }));
    const notice = make(
      "div",
      { className: "agent-notice", role: kind === "error" ? "alert" : "status", data: { kind } },
      make("p", {}, text),
      ...buttons,
    );
    this.place.replaceChildren(notice);
    notice.scrollIntoView({ block: "nearest" });
    return notice;
  }
}
