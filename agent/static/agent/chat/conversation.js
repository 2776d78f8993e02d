// One conversation: opening it, sending to it, following its answer to the end.

import { ApiError } from "./api.js";
import { part, pause } from "./dom.js";
import { Follower } from "./follow.js";
import { say } from "./words.js";
import { Transcript } from "./transcript.js";
import { OwnView } from "./views/own.js";
import { QueueView, queueActs } from "./views/queue.js";
import { TurnView } from "./views/turn.js";

const TRIES = 3;
const TRY_AGAIN_MS = 800;
const SPOKEN_MOST = 600;
const SILENT_MS = 1500; // a stream that has frames has told the first by then

export class Conversation {
  constructor({ root, api, store, drafts, notices, scroller, page }) {
    Object.assign(this, { root, api, store, drafts, notices, scroller, page });
    this.list = part(root, "messages");
    this.transcript = new Transcript(this.list, part(root, "earlier"), page);
    this.place = { threadId: null }; // what is open now; work that was begun for another place no longer touches the page
    this.follower = null;
    this.queue = new QueueView(part(root, "queue"), queueActs(api, () => this.place.threadId, (act) => this.#arrange(act)));
  }

  // ---- opening ------------------------------------------------------------------------------------------------------

  /** Show a conversation, or an empty one for null, and take up its answer where it is. */
  async open(threadId) {
    this.follower?.close();
    const place = { threadId };
    this.place = place;
    this.notices.clear();
    this.transcript.clear();
    this.queue.show();
    this.store.set({ threadId, title: "", busy: false, runId: null, editing: null, defaultAgent: null });
    this.page.composer.text = this.drafts.text(threadId) || this.drafts.unaccepted(threadId);
    part(this.root, "welcome").hidden = threadId !== null;
    if (threadId !== null) await this.#load(place);
  }

  /** Take up what another window of ours did here meanwhile. */
  async refresh() {
    const { place } = this;
    if (place.threadId === null) return;
    const detail = await this.api.get(`threads/${encodeURIComponent(place.threadId)}`).catch(() => null);
    if (!detail || this.place !== place) return;
    this.queue.show(detail.queue);
    if (this.store.get("busy") || this.settling) return; // the stream tells the rest
    if (detail.activeRunId || detail.messages.at(-1)?.id !== place.last) this.#show(detail);
    else this.page.titled(detail.title);
  }

  async #load(place) {
    const loading = part(this.root, "loading");
    const slow = setTimeout(() => { loading.hidden = false; }, 250);
    try {
      const detail = await this.api.get(`threads/${encodeURIComponent(place.threadId)}`);
      if (this.place === place) this.#show(detail);
    } catch (error) {
      if (this.place === place) this.page.failed(error, { again: () => this.open(place.threadId) });
    } finally {
      clearTimeout(slow);
      loading.hidden = true;
    }
  }

  #show(detail) {
    const { activeRunId = null, messages, title, defaultAgent = null, queue } = detail;
    this.store.set({ title, defaultAgent });
    this.place.last = messages.at(-1)?.id;
    this.queue.show(queue);
    this.transcript.show(messages, activeRunId);
    this.#dropArrivedDraft(messages);
    this.scroller.toEnd();
    if (activeRunId) this.#follow(activeRunId, null, messages);
    else if (messages.at(-1)?.role === "user") this.#offerAnswer();
  }

  // The page went before it heard that the server had the message.
  #dropArrivedDraft(messages) {
    const text = this.drafts.unaccepted(this.place.threadId);
    if (!text || messages.findLast(({ role }) => role === "user")?.content !== text) return;
    this.drafts.accepted(this.place.threadId);
    if (this.page.composer.text === text) this.page.composer.text = "";
  }

  #offerAnswer() {
    this.notices.show(say("unanswered"), { kind: "info", acts: [[say("try_again"), () => this.regenerate()]] });
  }

  // ---- sending ------------------------------------------------------------------------------------------------------

  /** Send what was written. Whatever goes wrong, the text is in the box again. */
  async send(text) {
    if (this.store.get("busy") && !this.store.get("queueing")) {
      this.notices.show(say("busy_here"), { kind: "info" });
      return;
    }
    const { place } = this;
    const own = new OwnView(text, this.page.acts);
    const editing = this.store.get("editing");
    const key = this.drafts.sending(place.threadId, text);
    this.store.set({ editing: null, busy: this.store.get("busy") || "sending" });
    this.page.composer.text = "";
    this.notices.clear();
    part(this.root, "welcome").hidden = true;
    own.mark("sending");
    this.list.append(own.element);
    this.scroller.toEnd();
    try {
      if (editing) await this.#cut(editing.messageId, own.element);
      const response = await this.#post({ message: text, ...this.#choices(place) }, key);
      this.drafts.accepted(place.threadId);
      await this.#accepted(response, place, own);
    } catch (error) {
      this.#refused(error, place, { own, text });
    }
  }

  /** Ask for another answer to the last message. */
  async regenerate() {
    if (this.store.get("busy")) return;
    const { place } = this;
    this.store.set({ busy: "sending" });
    this.notices.clear();
    try {
      const response = await this.#post({ regenerate: true, ...this.#choices(place) }, null);
      if (this.place === place) cutAfter(this.list.querySelector(".agent-own:nth-last-child(1 of .agent-own)"));
      await this.#accepted(response, place, null);
    } catch (error) {
      this.#refused(error, place, {});
    }
  }

  /** Stop the answer that is being written; what was said so far stays. */
  async stop() {
    const { place } = this;
    const runId = this.store.get("runId");
    if (!this.store.get("busy") || this.store.get("busy") === "stopping") return;
    this.store.set({ busy: "stopping" });
    place.stopWanted = !runId; // the run has no name yet: stop it as soon as it has
    if (!runId) return;
    try {
      await this.api.post(`chat/${encodeURIComponent(runId)}/cancel`);
    } catch (error) {
      if (this.place !== place || error.status === 404) return; // it has ended by itself
      this.store.set({ busy: "answering" });
      this.page.failed(error);
    }
  }

  async #cut(messageId, stopAt) {
    await this.api.delete(`threads/${encodeURIComponent(this.place.threadId)}/from/${encodeURIComponent(messageId)}`);
    const first = this.list.querySelector(`[data-message="${CSS.escape(messageId)}"]`);
    while (first?.nextElementSibling && first.nextElementSibling !== stopAt) first.nextElementSibling.remove();
    first?.remove();
  }

  #choices(place) {
    const agent = this.root.dataset.agent || this.store.get("defaultAgent") || this.store.get("agent");
    const choices = { threadId: place.threadId, agent, model: this.store.get("model") };
    return Object.fromEntries(Object.entries(choices).filter(([, value]) => value));
  }

  /** The key makes a repeat harmless: the server answers what the first one began. */
  async #post(body, key) {
    const headers = key ? { "Idempotency-Key": key } : {};
    for (let tried = 1; ; tried += 1) {
      try {
        return await this.api.open("chat", { method: "POST", body, headers });
      } catch (error) {
        const reused = error.code === "idempotency_key_reused";
        if (reused) headers["Idempotency-Key"] = crypto.getRandomValues(new Uint32Array(4)).join("-");
        if (!reused && (error.status !== 0 || !key)) throw error;
        if (tried >= TRIES) throw error;
        if (!reused) await pause(TRY_AGAIN_MS * tried);
      }
    }
  }

  async #accepted(response, place, own) {
    const streams = response.headers.get("Content-Type")?.startsWith("text/event-stream");
    const told = streams ? {} : await response.json();
    const threadId = response.headers.get("X-Agent-Thread-Id") ?? told.threadId ?? place.threadId;
    if (this.place !== place) {
      response.body?.cancel().catch(() => {});
      this.page.refresh();
      return;
    }
    if (place.threadId === null) this.page.begun(threadId, place);
    this.page.touched(threadId);
    own?.mark("");
    if (streams) this.#follow(response.headers.get("X-Agent-Run-Id"), response);
    else if (told.queued && !told.runId) this.#queued(told, own);
    else await this.open(threadId);
  }

  // It stands in the queue, not yet among what was said.
  #queued(told, own) {
    own?.element.remove();
    this.queue.show(told.queue);
    this.page.announce(say("queued"));
    if (this.follower) return;
    this.store.set({ busy: false });
    this.refresh();
  }

  #refused(error, place, { own, text }) {
    own?.element.remove();
    if (this.place !== place) {
      if (text) this.drafts.keep(place.threadId, text);
      return;
    }
    this.store.set({ busy: this.follower ? this.store.get("busy") : false });
    if (text) this.page.composer.giveBack(text);
    part(this.root, "welcome").hidden = place.threadId !== null || this.list.childElementCount > 0;
    this.page.failed(error, { kept: Boolean(text) });
    if (error.code === "run_active") this.#join(place);
  }

  // ---- what waits ---------------------------------------------------------------------------------------------------

  async #arrange(act) {
    const { place } = this;
    try {
      const state = await act();
      if (this.place !== place) return;
      this.queue.show(state);
      if (state.runId) this.refresh();
    } catch (error) {
      if (this.place !== place) return;
      this.page.failed(error);
      this.refresh(); // it has started, or another window was faster
    }
  }

  // Another window of ours made the thread busy: show what it is being told.
  async #join(place) {
    const detail = await this.api.get(`threads/${encodeURIComponent(place.threadId)}`).catch(() => null);
    if (detail?.activeRunId && this.place === place) this.#show(detail);
  }

  // ---- following ----------------------------------------------------------------------------------------------------

  #follow(runId, response, stored = []) {
    const { place } = this;
    const turn = new TurnView({ agent: this.page.agentLabel(this.#choices(place).agent), on: this.page.acts });
    const state = { runId, turn, cancelled: false };
    this.list.append(turn.element);
    this.store.set({ busy: place.stopWanted ? "stopping" : "answering", runId });
    this.follower?.close();
    this.follower = new Follower(this.api, runId, {
      frame: (frame) => this.#frame(frame, state),
      done: () => this.#settle(state, null),
      failed: (error) => this.#settle(state, new ApiError({ status: 200, ...error })),
      gone: (error) => this.#gone(state, error),
      lost: () => this.notices.show(say("lost"), { kind: "info" }),
      back: () => this.notices.clear(),
    });
    if (place.stopWanted) {
      this.store.set({ busy: "answering" });
      this.stop();
    }
    this.follower.follow(response);
    const ofRun = stored.filter((message) => message.runId === runId && message.role === "assistant");
    if (ofRun.length) setTimeout(() => turn.fillOpen(ofRun), SILENT_MS);
  }

  #frame(frame, state) {
    if (frame.kind === "title") this.page.titled(frame.title);
    if (frame.kind === "cancelled") state.cancelled = true;
    if (frame.kind === "queue") this.queue.show(frame.queue);
    const heard = state.turn.frame(frame);
    if (heard) this.page.announce(heard);
  }

  async #settle(state, error) {
    const { turn } = state;
    const { place } = this;
    this.follower = null;
    this.settling = true;
    this.notices.clear(); // what was said of an answer that is being written is over with it
    turn.end(state);
    this.store.set({ busy: false, runId: null });
    if (!turn.steps.some((step) => step.element.hasChildNodes()) && !state.cancelled) turn.element.remove();
    if (error) this.page.failed(error, { again: () => this.regenerate(), label: say("try_again") });
    else if (state.cancelled) this.page.announce(say("stopped"));
    else if (turn.spoken) this.page.announce(say("answer_ready", { agent: turn.agent, text: turn.spoken.slice(0, SPOKEN_MOST) }));
    await this.#reconcile(place, state);
    this.settling = false;
  }

  /** Put what was stored in the place of what was streamed: it has ids, so it can be acted on. */
  async #reconcile(place, { runId, turn }) {
    const detail = await this.api.get(`threads/${encodeURIComponent(place.threadId)}`).catch(() => null);
    if (!detail || this.place !== place || this.follower) return;
    this.page.titled(detail.title);
    place.last = detail.messages.at(-1)?.id;
    this.queue.show(detail.queue);
    if (detail.activeRunId) {
      this.#show(detail);
      return;
    }
    const ofRun = detail.messages.filter((message) => message.runId === runId);
    for (const element of this.transcript.items(ofRun)) replaceStreamed(this.list, element, turn.element);
  }

  // The stream is not there any more: what was stored is all there is.
  async #gone(state, error) {
    const { place } = this;
    this.follower = null;
    if (error.status === 401) {
      this.store.set({ busy: false });
      this.page.failed(error);
      return;
    }
    await pause(1000);
    if (this.place === place) await this.open(place.threadId);
  }
}

function replaceStreamed(list, stored, turn) {
  if (stored.classList.contains("agent-own")) {
    const streamed = [...list.querySelectorAll(".agent-own:not([data-message])")].at(-1);
    streamed?.replaceWith(stored);
  } else if (turn.isConnected) {
    turn.replaceWith(stored);
  }
}

function cutAfter(element) {
  while (element?.nextElementSibling) element.nextElementSibling.remove();
}
