// What waits in the conversation: in order, each to be changed, moved, removed or sent now; and why it is held, if it is.

import { button, make } from "../dom.js";
import { say } from "../words.js";

export class QueueView {
  /** `on`: edit(item, text), move(item, position), remove(item), now(item), resume(), clear(). */
  constructor(place, on) {
    this.place = place;
    this.on = on;
    this.editing = null; // the id and the text of the one that is being changed
    this.show();
  }

  /** The state of the queue as the server tells it; none where nothing may wait. */
  show({ items = [], paused = null } = {}) {
    const focused = this.#focused();
    if (!items.some(({ id }) => id === this.editing?.id)) this.editing = null;
    this.items = items;
    this.paused = paused;
    this.place.hidden = items.length === 0 && !paused;
    this.place.replaceChildren(
      make("div", { className: "agent-queue-head" }, make("h3", { className: "agent-queue-title" }, this.#title()), this.#acts()),
      make("ol", { className: "agent-queue-items" }, ...items.map((item, position) => this.#item(item, position))),
    );
    if (focused) this.#focus(focused);
  }

  #title() {
    if (!this.paused) return say("queue_waits", { count: this.items.length });
    const { reason, message = "" } = this.paused;
    return say(`queue_paused_${reason}`, { message }).trim();
  }

  #acts() {
    const acts = [];
    if (this.paused) acts.push(button(say("queue_resume"), () => this.on.resume(), { className: "agent-button" }));
    if (this.items.length > 1 || this.paused) acts.push(button(say("queue_clear"), () => this.on.clear()));
    return make("div", { className: "agent-queue-acts" }, ...acts);
  }

  #item(item, position) {
    const inside = this.editing?.id === item.id ? this.#editor(item) : this.#shown(item, position);
    return make("li", { className: "agent-queued", data: { queued: item.id } }, ...inside);
  }

  #shown(item, position) {
    const act = (name, run) =>
      button(say(`queue_${name}`), run, { data: { act: name }, aria: { label: say("queue_of", { act: say(`queue_${name}`), text: item.content }) } });
    return [
      make("p", { className: "agent-queued-text", dir: "auto" }, item.content),
      make(
        "div",
        { className: "agent-acts" },
        act("now", () => this.on.now(item)),
        act("edit", () => this.#edit(item)),
        position > 0 ? act("up", () => this.on.move(item, position - 1)) : null,
        act("remove", () => this.on.remove(item)),
      ),
    ];
  }

  #editor(item) {
    const box = make("textarea", {
      className: "agent-text agent-queued-box", rows: 2, value: this.editing.text, data: { act: "box" },
      aria: { label: say("queue_text") },
      on: { input: () => { this.editing.text = box.value; } },
    });
    const save = () => {
      if (!box.value.trim()) return;
      this.editing = null;
      this.on.edit(item, box.value);
    };
    box.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.stopPropagation(); // not also the answer that is being written
        this.#leave(item);
      }
    });
    return [
      box,
      make("div", { className: "agent-acts" }, button(say("queue_save"), save), button(say("queue_cancel"), () => this.#leave(item))),
    ];
  }

  #edit(item) {
    this.editing = { id: item.id, text: item.content };
    this.show(this);
    this.#focus({ id: item.id, act: "box" });
  }

  #leave(item) {
    this.editing = null;
    this.show(this);
    this.#focus({ id: item.id, act: "edit" });
  }

  #focused() {
    const element = this.place.contains(document.activeElement) ? document.activeElement : null;
    const id = element?.closest("[data-queued]")?.dataset.queued;
    return element ? { id, act: element.dataset.act } : null;
  }

  // The same act of the same message; where that is gone, the next thing there is.
  #focus({ id, act }) {
    const item = id && this.place.querySelector(`[data-queued="${CSS.escape(id)}"]`);
    const next = item?.querySelector(`[data-act="${act}"]`) ?? item?.querySelector("button") ?? this.place.querySelector("button");
    if (this.place.hidden || !next) this.place.closest("[data-agent-chat]").querySelector("[data-text]").focus();
    else next.focus();
  }
}

/** What the reader may do with what waits, as requests; `arrange` carries one out and shows the queue as it is then. */
export function queueActs(api, threadId, arrange) {
  const of = (item) => `queue/${encodeURIComponent(item.id)}`;
  const whole = () => `threads/${encodeURIComponent(threadId())}/queue`;
  return {
    edit: (item, text) => arrange(() => api.patch(of(item), { message: text })),
    move: (item, position) => arrange(() => api.patch(of(item), { position })),
    remove: (item) => arrange(() => api.delete(of(item))),
    now: (item) => arrange(() => api.post(`${of(item)}/interrupt`)),
    resume: () => arrange(() => api.post(`${whole()}/resume`)),
    clear: () => arrange(() => api.delete(whole())),
  };
}
