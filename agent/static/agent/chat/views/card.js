// What waits for a decision: what will happen, exactly with what, how long there is, and the two answers.

import { make } from "../dom.js";
import { explain, say } from "../words.js";
import { shownValue } from "./value.js";

const REQUESTER = "requester";
const TICK_MS = 1000;
// What changes the look of a text and is not seen itself: shown as its number.
const UNSEEN = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

export class CardView {
  /** `decide(choice, body, target)` sends a decision; it throws what the server refuses. */
  constructor({ id, approver, digest, fourEyes = false, confirmation = {}, expiresAt, target = null }, { name, input, decide }) {
    this.id = id;
    this.digest = digest;
    this.target = target; // a proposal that stands for the call
    this.decide = decide;
    this.expiresAt = expiresAt ? Date.parse(expiresAt) : null;
    this.title = seen(confirmation.title ?? name);
    this.said = make("p", { className: "agent-card-said", role: "status" });
    this.left = make("p", { className: "agent-card-left", hidden: this.expiresAt === null });
    this.mine = approver === REQUESTER && !fourEyes;
    this.acts = this.mine ? this.#buttons(seen(confirmation.verb ?? say("card_yes"))) : null;
    this.element = make(
      "div",
      { className: "agent-card", role: "group", aria: { label: this.title }, data: { card: id } },
      make("p", { className: "agent-card-title", dir: "auto" }, this.title),
      confirmation.detail ? make("p", { className: "agent-card-detail", dir: "auto" }, seen(confirmation.detail)) : null,
      make("div", { className: "agent-card-given" }, shownValue(input)),
      exactly(input),
      this.left,
      this.acts,
      this.said,
    );
    if (!this.mine) this.said.textContent = say("card_others");
    this.#tick();
  }

  /** What became of it: approved, rejected or expired; anything else is over without a decision. */
  settle({ status, decidedVia, reason }) {
    this.status = status;
    this.acts?.remove();
    this.left.remove();
    this.element.dataset.status = status;
    const word = decidedVia === "remembered" ? "card_remembered" : `card_${status}`;
    const told = status === "rejected" && reason ? [say(word), seen(reason)] : [say(word)];
    this.said.textContent = told.join(" ");
  }

  #buttons(verb) {
    this.remember = make("input", { type: "checkbox" });
    const act = (text, choice, className) =>
      make("button", { type: "button", className, on: { click: () => this.#choose(choice) } }, text);
    return make(
      "div",
      { className: "agent-card-acts" },
      act(verb, "approve", "agent-button agent-primary"),
      act(say("card_no"), "reject", "agent-button"),
      make("label", { className: "agent-card-remember" }, this.remember, say("card_remember")),
    );
  }

  async #choose(choice) {
    const body = { toolCallId: this.id, digest: this.digest };
    if (choice === "approve") body.remember = this.remember.checked;
    this.#lock(true);
    this.said.textContent = say("card_sending");
    try {
      await this.decide(choice, body, this.target);
      if (!this.status) this.settle({ status: choice === "approve" ? "approved" : "rejected" });
    } catch (error) {
      if (this.status) return; // somebody else was faster, and the stream has said so
      this.said.textContent = explain(error);
      if (error.code === "approval_expired") this.settle({ status: "expired" });
      else if (error.code !== "already_decided" && error.code !== "run_not_active") this.#lock(false);
    }
  }

  #lock(yes) {
    for (const control of this.acts.querySelectorAll("button, input")) control.disabled = yes;
  }

  #tick() {
    if (this.expiresAt === null || this.status) return;
    const seconds = Math.max(0, Math.ceil((this.expiresAt - Date.now()) / 1000));
    this.left.textContent = seconds ? say("card_left", { time: inWords(seconds) }) : say("card_over");
    if (seconds) setTimeout(() => this.#tick(), seconds < 3600 ? TICK_MS : 60 * TICK_MS);
    else this.acts?.remove();
  }
}

/** The arguments as they will be used, complete. */
function exactly(input) {
  const text = make("code", {}, seen(JSON.stringify(input, null, 2) ?? "null"));
  return make("details", { className: "agent-card-exact" }, make("summary", {}, say("card_exact")), make("pre", { tabIndex: 0 }, text));
}

function seen(text) {
  return text.replace(UNSEEN, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function inWords(seconds) {
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor((seconds % 3600) / 60);
  const rest = String(seconds % 60).padStart(2, "0");
  return hours ? say("card_hours", { hours, minutes }) : `${minutes}:${rest}`;
}
