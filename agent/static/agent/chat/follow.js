// Following a run to its end, over as many connections as it takes.

import { ApiError } from "./api.js";
import { pause } from "./dom.js";
import { EventReader } from "./sse.js";

const SILENCE_MS = 45_000; // the server pings every 15 s
const WAIT_MS = 500;
const WAIT_MOST_MS = 15_000;

export class Follower {
  /** `on`: frame(frame), done(), failed({code, message}), gone(error), lost(), back(). */
  constructor(api, runId, on) {
    this.api = api;
    this.runId = runId;
    this.on = on;
    this.last = 0;
    this.tries = 0;
    this.stopping = new AbortController();
  }

  /** Stop reading. The run itself goes on. */
  close() {
    this.stopping.abort();
  }

  /** Read to the end: first the response that is open already, if one is. */
  async follow(response = null) {
    let current = response;
    while (!this.stopping.signal.aborted) {
      try {
        current ??= await this.#reconnect();
        if (await this.#read(current)) return;
      } catch (error) {
        if (this.stopping.signal.aborted) return;
        if (isFinal(error)) {
          this.on.gone(error);
          return;
        }
      }
      current = null;
      await this.#wait();
    }
  }

  async #reconnect() {
    const path = `chat/${encodeURIComponent(this.runId)}/stream?after=${this.last}`;
    return this.api.open(path, { signal: this.stopping.signal });
  }

  /** True when the stream said that it is over; false when it was merely cut. */
  async #read(response) {
    const reader = new EventReader(response.body);
    const cancel = () => reader.cancel();
    this.stopping.signal.addEventListener("abort", cancel, { once: true });
    let watchdog;
    try {
      watchdog = setTimeout(cancel, SILENCE_MS);
      for await (const event of reader.events()) {
        if (this.stopping.signal.aborted) return true;
        clearTimeout(watchdog);
        watchdog = setTimeout(cancel, SILENCE_MS);
        this.#connected();
        if (this.#take(event)) return true;
      }
      return this.stopping.signal.aborted;
    } finally {
      clearTimeout(watchdog);
      this.stopping.signal.removeEventListener("abort", cancel);
      cancel();
    }
  }

  #take({ event, id, data }) {
    if (event === "done") this.on.done();
    if (event === "error") this.on.failed(JSON.parse(data));
    if (event === "message") {
      const number = Number(id);
      if (number > this.last) {
        this.last = number; // a frame that was shown is never shown again
        this.on.frame(JSON.parse(data));
      }
    }
    return event === "done" || event === "error";
  }

  #connected() {
    if (this.tries > 1) this.on.back();
    this.tries = 0;
  }

  // The first reconnect is at once and silent: a proxy's time limit is nobody's concern.
  async #wait() {
    this.tries += 1;
    if (this.tries === 1) return;
    this.on.lost();
    const longest = Math.min(WAIT_MOST_MS, WAIT_MS * 2 ** (this.tries - 2));
    const early = new AbortController();
    const wake = () => early.abort();
    window.addEventListener("online", wake, { once: true });
    this.stopping.signal.addEventListener("abort", wake, { once: true });
    await pause(longest * (0.75 + Math.random() / 4), early.signal);
    window.removeEventListener("online", wake);
    this.stopping.signal.removeEventListener("abort", wake);
  }
}

function isFinal(error) {
  return error instanceof ApiError && error.status >= 400 && error.status < 500 && ![408, 425, 429].includes(error.status);
}
