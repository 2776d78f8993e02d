// The box one writes in. It never throws text away: what was not accepted comes back to it.

import { part } from "./dom.js";
import { Files } from "./files.js";
import { say } from "./words.js";

const SAVE_MS = 300;

export class Composer {
  /** `on`: send(text), stop(), cancelEditing(). */
  constructor(root, { store, drafts, page, on }) {
    this.form = part(root, "composer");
    this.box = part(root, "text");
    this.store = store;
    this.drafts = drafts;
    this.files = new Files(root, page);
    this.on = on;
    this.saving = 0;
    this.#listen(root);
    store.show(["busy"], () => this.#showBusy(part(root, "send"), part(root, "stop")));
    store.show(["editing"], () => {
      part(root, "editing").hidden = !store.get("editing");
    });
  }

  get text() {
    return this.box.value;
  }

  set text(value) {
    this.box.value = value;
    this.#keep();
    this.#grow();
  }

  /** Put text back that could not be sent, before what was typed meanwhile. */
  giveBack(text) {
    const typed = this.text.trim() && this.text !== text ? `\n\n${this.text}` : "";
    this.text = text + typed;
    this.focus();
  }

  focus() {
    this.box.focus();
    this.box.setSelectionRange(this.box.value.length, this.box.value.length);
  }

  #listen(root) {
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    this.box.addEventListener("keydown", (event) => {
      // While an input method composes, Enter chooses a word.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.#send();
    });
    this.box.addEventListener("input", () => {
      this.#grow();
      clearTimeout(this.saving);
      this.saving = setTimeout(() => this.#keep(), SAVE_MS);
    });
    window.addEventListener("pagehide", () => this.#keep());
    part(root, "stop").addEventListener("click", () => this.on.stop());
    part(root, "editing-cancel").addEventListener("click", () => this.on.cancelEditing());
    // The whole box is the place to write.
    this.form.addEventListener("click", (event) => {
      if (event.target.matches(".agent-box, .agent-box-foot")) this.focus();
    });
  }

  #send() {
    if (this.files.uploading) return; // what is still on its way would be left behind
    if (this.text.trim() || this.files.any) this.on.send(this.text);
  }

  #keep() {
    clearTimeout(this.saving);
    if (!this.store.get("editing")) this.drafts.keep(this.store.get("threadId"), this.text);
  }

  #grow() {
    this.box.style.height = "auto";
    this.box.style.height = `${this.box.scrollHeight}px`;
  }

  #showBusy(send, stop) {
    const busy = this.store.get("busy");
    const hadFocus = stop === document.activeElement;
    // Not `disabled`, which would drop the focus to nowhere.
    stop.setAttribute("aria-disabled", String(busy === "stopping"));
    send.hidden = Boolean(busy) && !this.store.get("queueing");
    stop.hidden = !busy;
    stop.textContent = say(busy === "stopping" ? "stopping" : "stop");
    if (!busy && hadFocus) this.focus();
  }
}
