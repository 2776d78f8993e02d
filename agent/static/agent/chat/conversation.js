// One conversation: opening it, sending to it, arranging what waits in it.

import { Answering } from "./answering.js";
import { part } from "./dom.js";
import { post } from "./sending.js";
import { say } from "./words.js";
import { Transcript } from "./transcript.js";
import { OwnView } from "./views/own.js";
import { QueueView, queueActs } from "./views/queue.js";

export class Conversation {
  constructor({ root, api, store, drafts, notices, scroller, page }) {
    Object.assign(this, { root, api, store, drafts, notices, scroller, page });
    this.list = part(root, "messages");
    this.transcript = new Transcript(this.list, part(root, "earlier"), page);
    this.place = { threadId: null }; // what is open now; work that was begun for another place no longer touches the page
    this.posted = null; // settles when the server has what was sent
    this.answering = new Answering(this);
    this.queue = new QueueView(part(root, "queue"), queueActs(api, () => this.place.threadId, (act) => this.#arrange(act)));
  }

  // ---- opening ------------------------------------------------------------------------------------------------------

  /** Show a conversation, or an empty one for null, and take up its answer where it is. */
  async open(threadId) {
    this.answering.close();
    const place = { threadId };
    this.place = place;
    this.notices.clear();
    this.transcript.clear();
    this.queue.show();
    this.store.set({ threadId, title: "", busy: false, runId: null, editing: null, defaultAgent: null });
    this.page.composer.files.clear();
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
    this.transcript.renew(detail.messages);
    this.answering.heard = this.answering.settling;
    if (this.store.get("busy") || this.answering.settling) return; // the stream tells the rest
    if (detail.activeRunId || detail.messages.at(-1)?.id !== place.last) this.show(detail);
    else this.page.titled(detail.title);
  }

  async #load(place) {
    const loading = part(this.root, "loading");
    const slow = setTimeout(() => { loading.hidden = false; }, 250);
    try {
      const detail = await this.api.get(`threads/${encodeURIComponent(place.threadId)}`);
      if (this.place === place) this.show(detail);
    } catch (error) {
      if (this.place === place) this.page.failed(error, { again: () => this.open(place.threadId) });
    } finally {
      clearTimeout(slow);
      loading.hidden = true;
    }
  }

  /** Show a conversation as the server tells it, and take up its answer. */
  show(detail) {
    const { activeRunId = null, messages, title, defaultAgent = null, queue } = detail;
    this.store.set({ title, defaultAgent });
    this.place.last = messages.at(-1)?.id;
    this.queue.show(queue);
    this.transcript.show(messages, activeRunId);
    this.#dropArrivedDraft(messages);
    this.scroller.toEnd();
    if (activeRunId) this.answering.follow(activeRunId, null, messages);
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
    const files = this.page.composer.files.take();
    const own = new OwnView(text, this.page.acts, files);
    const editing = this.store.get("editing");
    const key = this.drafts.sending(place.threadId, text);
    this.store.set({ editing: null, busy: this.store.get("busy") || "sending" });
    this.page.composer.text = "";
    this.notices.clear();
    part(this.root, "welcome").hidden = true;
    own.mark("sending");
    this.list.append(own.element);
    this.scroller.toEnd();
    const before = this.posted; // what was written first arrives first, and it may have begun the conversation
    let arrived;
    this.posted = new Promise((resolve) => { arrived = resolve; });
    await before;
    try {
      if (editing) await this.#cut(editing.messageId, own.element);
      const response = await post(this.api, { message: text, ...sent(files), ...this.choices(place) }, key);
      this.drafts.accepted(place.threadId);
      await this.#accepted(response, place, own);
    } catch (error) {
      this.#refused(error, place, { own, text, files });
    } finally {
      arrived();
    }
  }

  /** Ask for another answer to the last message. */
  async regenerate() {
    if (this.store.get("busy")) return;
    const { place } = this;
    this.store.set({ busy: "sending" });
    this.notices.clear();
    try {
      const response = await post(this.api, { regenerate: true, ...this.choices(place) }, null);
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

  /** What is asked for beside the message. */
  choices(place) {
    const agent = this.root.dataset.agent || this.store.get("defaultAgent") || this.store.get("agent");
    const choices = { threadId: place.threadId, agent, model: this.store.get("model") };
    return Object.fromEntries(Object.entries(choices).filter(([, value]) => value));
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
    if (streams) this.answering.follow(response.headers.get("X-Agent-Run-Id"), response);
    else if (told.queued && !told.runId) this.#queued(told, own);
    else await this.open(threadId);
  }

  // It stands in the queue, not yet among what was said.
  #queued(told, own) {
    own?.element.remove();
    this.queue.show(told.queue);
    this.page.announce(say("queued"));
    if (this.answering.follower) return;
    this.store.set({ busy: false });
    this.refresh();
  }

  #refused(error, place, { own, text, files = [] }) {
    own?.element.remove();
    if (this.place !== place) {
      if (text) this.drafts.keep(place.threadId, text);
      return;
    }
    this.store.set({ busy: this.answering.follower ? this.store.get("busy") : false });
    if (text) this.page.composer.giveBack(text);
    this.page.composer.files.giveBack(files);
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
    if (detail?.activeRunId && this.place === place) this.show(detail);
  }
}

// Files are named by their ids alone.
function sent(files) {
  return files.length ? { attachments: files.map(({ mediaId }) => ({ mediaId })) } : {};
}

function cutAfter(element) {
  while (element?.nextElementSibling) element.nextElementSibling.remove();
}
