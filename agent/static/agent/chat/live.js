// Hearing that the open conversation has changed elsewhere, where the site has a socket. Without one nothing is lost: the
// page looks again whenever it is looked at.

const WAIT_MS = 1000;
const WAIT_MOST_MS = 60_000;
const NOBODY = 4401;
const TOGETHER_MS = 150; // what happens at once is looked at once

export class Live {
  /** `changed()` is called when there may be something new. */
  constructor(path, changed) {
    this.path = path;
    this.changed = changed;
    this.threadId = null;
    this.tries = 0;
    this.refs = 0;
    if (path) this.#connect();
  }

  watch(threadId) {
    if (threadId === this.threadId) return;
    if (this.threadId) this.#say("unwatch", this.threadId);
    this.threadId = threadId;
    if (threadId) this.#say("watch", threadId);
  }

  #connect() {
    const url = new URL(this.path, location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const again = this.tries > 0;
    this.socket = new WebSocket(url);
    this.socket.addEventListener("open", () => {
      this.tries = 0;
      if (this.threadId) this.#say("watch", this.threadId);
      if (again) this.#changed(); // what was said meanwhile was not heard
    });
    this.socket.addEventListener("message", ({ data }) => {
      const said = JSON.parse(data);
      if (said.type === "thread-changed" && said.threadId === this.threadId) this.#changed();
    });
    this.socket.addEventListener("close", ({ code }) => {
      if (code === NOBODY) return;
      this.tries += 1;
      setTimeout(() => this.#connect(), Math.min(WAIT_MOST_MS, WAIT_MS * 2 ** (this.tries - 1)));
    });
  }

  #changed() {
    clearTimeout(this.soon);
    this.soon = setTimeout(this.changed, TOGETHER_MS);
  }

  #say(type, threadId) {
    if (this.socket?.readyState !== WebSocket.OPEN) return;
    this.refs += 1;
    this.socket.send(JSON.stringify({ type, ref: String(this.refs), threadId }));
  }
}
