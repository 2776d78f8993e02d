// The answer that is being written in the open conversation: following it to its end, then showing what was stored.

import { ApiError } from "./api.js";
import { pause } from "./dom.js";
import { Follower } from "./follow.js";
import { say } from "./words.js";
import { TurnView } from "./views/turn.js";

const SPOKEN_MOST = 600;
const SILENT_MS = 1500; // a stream that has frames has told the first by then

export class Answering {
  constructor(conversation) {
    this.conversation = conversation;
    this.follower = null;
    this.settling = false; // the stream is over, what was stored is being read
    this.heard = false; // of a change, while it was read
  }

  close() {
    this.follower?.close();
  }

  /** Follow a run in the open conversation: by the response that began it, or else from the start of its stream. */
  follow(runId, response, stored = []) {
    const { place, page, list, store, api, notices } = this.conversation;
    const turn = new TurnView({ agent: page.agentLabel(this.conversation.choices(place).agent), on: page.acts });
    const state = { runId, turn, cancelled: false };
    list.append(turn.element);
    store.set({ busy: place.stopWanted ? "stopping" : "answering", runId });
    this.close();
    this.follower = new Follower(api, runId, {
      frame: (frame) => this.#frame(frame, state),
      done: () => this.#settle(state, null),
      failed: (error) => this.#settle(state, new ApiError({ status: 200, ...error })),
      gone: (error) => this.#gone(state, error),
      lost: () => notices.show(say("lost"), { kind: "info" }),
      back: () => notices.clear(),
    });
    if (place.stopWanted) {
      store.set({ busy: "answering" });
      this.conversation.stop();
    }
    this.follower.follow(response);
    const ofRun = stored.filter((message) => message.runId === runId && message.role === "assistant");
    if (ofRun.length) setTimeout(() => turn.fillOpen(ofRun), SILENT_MS);
  }

  #frame(frame, state) {
    const { page, queue } = this.conversation;
    if (frame.kind === "title") page.titled(frame.title);
    if (frame.kind === "cancelled") state.cancelled = true;
    if (frame.kind === "queue") queue.show(frame.queue);
    const heard = state.turn.frame(frame);
    if (heard) page.announce(heard);
  }

  async #settle(state, error) {
    const { turn } = state;
    const { place, page, store, notices } = this.conversation;
    this.follower = null;
    this.settling = true;
    notices.clear(); // what was said of an answer that is being written is over with it
    turn.end(state);
    store.set({ busy: false, runId: null });
    if (!turn.steps.some((step) => step.element.hasChildNodes()) && !state.cancelled) turn.element.remove();
    if (error) page.failed(error, { again: () => this.conversation.regenerate(), label: say("try_again") });
    else if (state.cancelled) page.announce(say("stopped"));
    else if (turn.spoken) page.announce(say("answer_ready", { agent: turn.agent, text: turn.spoken.slice(0, SPOKEN_MOST) }));
    await this.#reconcile(place, state);
    this.settling = false;
    if (this.heard) await this.conversation.refresh();
  }

  /** Put what was stored in the place of what was streamed: it has ids, so it can be acted on. */
  async #reconcile(place, { runId, turn }) {
    const { api, page, queue, list, transcript } = this.conversation;
    const detail = await api.get(`threads/${encodeURIComponent(place.threadId)}`).catch(() => null);
    if (!detail || this.conversation.place !== place || this.follower) return;
    page.titled(detail.title);
    place.last = detail.messages.at(-1)?.id;
    queue.show(detail.queue);
    const last = detail.messages.at(-1);
    const told = last?.role === "assistant" && last.runId !== runId; // how an action ended, which had waited for this
    if (detail.activeRunId || told) {
      this.conversation.show(detail);
      return;
    }
    const ofRun = detail.messages.filter((message) => message.runId === runId);
    for (const element of transcript.items(ofRun)) replaceStreamed(list, element, turn.element);
  }

  // The stream is not there any more: what was stored is all there is.
  async #gone(state, error) {
    const { place, store, page } = this.conversation;
    this.follower = null;
    if (error.status === 401) {
      store.set({ busy: false });
      page.failed(error);
      return;
    }
    await pause(1000);
    if (this.conversation.place === place) await this.conversation.open(place.threadId);
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
