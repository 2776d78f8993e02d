// The conversations at the side: a list of links, so that they can be opened in another tab too.

import { make, part } from "./dom.js";
import { say } from "./words.js";

const FIRST = 50;
const MOST = 200;
const MARKS = /[*_`#>|]+/g; // what a model writes for looks

export class Sidebar {
  /** `on`: open(threadId), fresh(), failed(error); `address(threadId)` is a conversation's own URL. */
  constructor(root, { api, store, address, language, on }) {
    this.root = root;
    this.api = api;
    this.store = store;
    this.address = address;
    this.on = on;
    this.limit = FIRST;
    this.exact = new Intl.DateTimeFormat(language, { dateStyle: "full", timeStyle: "short" });
    this.brief = new Intl.DateTimeFormat(language, { dateStyle: "short", timeStyle: "short" });
    this.#listen();
    store.show(["threads", "threadId"], () => this.#show());
  }

  async load() {
    const threads = await this.api.get(`threads?limit=${this.limit}`);
    this.store.set({ threads });
  }

  /** A conversation has a new title or is new: it stands first. */
  touch(summary) {
    const others = this.store.get("threads").filter(({ id }) => id !== summary.id);
    const known = this.store.get("threads").find(({ id }) => id === summary.id);
    this.store.set({ threads: [{ ...known, updatedAt: new Date().toISOString(), ...summary }, ...others] });
  }

  /** Change what the list says of a conversation, where it stands. */
  change(id, values) {
    this.store.set({ threads: this.store.get("threads").map((known) => (known.id === id ? { ...known, ...values } : known)) });
  }

  remove(id) {
    this.store.set({ threads: this.store.get("threads").filter((known) => known.id !== id) });
  }

  /** The drawer of narrow screens. */
  drawer(open) {
    const toggle = part(this.root, "side-open");
    this.root.toggleAttribute("data-drawer", open);
    toggle.setAttribute("aria-expanded", String(open));
    part(this.root, "shade").hidden = !open;
    this.root.querySelector(".agent-main").inert = open;
    if (open) part(this.root, "side-close").focus();
    else if (this.root.querySelector(".agent-side").contains(document.activeElement)) toggle.focus();
  }

  #listen() {
    part(this.root, "new").addEventListener("click", () => this.#go(() => this.on.fresh()));
    part(this.root, "side-open").addEventListener("click", () => this.drawer(true));
    part(this.root, "side-close").addEventListener("click", () => this.drawer(false));
    part(this.root, "shade").addEventListener("click", () => this.drawer(false));
    part(this.root, "older").addEventListener("click", () => {
      this.limit = MOST;
      this.load().catch((error) => this.on.failed(error));
    });
    part(this.root, "threads").addEventListener("click", (event) => {
      const link = event.target.closest("a[data-thread-id]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      this.#go(() => this.on.open(link.dataset.threadId));
    });
  }

  #go(act) {
    if (this.root.hasAttribute("data-drawer")) this.drawer(false);
    act();
  }

  #show() {
    const threads = this.store.get("threads");
    const list = part(this.root, "threads");
    const focused = list.contains(document.activeElement) ? document.activeElement.dataset.threadId : null;
    list.replaceChildren(...this.#groups(threads));
    if (focused) list.querySelector(`[data-thread-id="${CSS.escape(focused)}"]`)?.focus();
    part(this.root, "threads-empty").hidden = !this.store.get("threadsLoaded") || threads.length > 0;
    part(this.root, "older").hidden = threads.length < FIRST || this.limit > FIRST;
  }

  #groups(threads) {
    const groups = Map.groupBy(threads, ({ updatedAt }) => ageInWords(new Date(updatedAt)));
    return [...groups].flatMap(([age, members]) => [
      make("h3", { className: "agent-age" }, say(age)),
      make("ul", {}, ...members.map((thread) => this.#item(thread, alike(thread, threads)))),
    ]);
  }

  #item(thread, alike) {
    const title = titled(thread.title);
    const at = this.exact.format(new Date(thread.updatedAt));
    const said = thread.lastMessagePreview?.replace(MARKS, "").trim();
    const detail = [this.brief.format(new Date(thread.updatedAt)), said].filter(Boolean).join(" · ");
    const properties = {
      className: "agent-thread",
      href: this.address(thread.id),
      title: `${title}\n${at}`,
      dir: "auto",
      data: { threadId: thread.id },
    };
    if (thread.id === this.store.get("threadId")) properties.aria = { current: "page" };
    const more = alike ? make("span", { className: "agent-thread-preview", dir: "auto" }, detail) : null;
    return make("li", {}, make("a", properties, title, more));
  }
}

/** Whether another conversation has the same title, so that more has to be said. */
function alike(thread, threads) {
  return threads.some(({ id, title }) => id !== thread.id && titled(title) === titled(thread.title));
}

function ageInWords(at) {
  const midnight = new Date().setHours(0, 0, 0, 0);
  const days = Math.ceil((midnight - at) / 86_400_000);
  return days <= 0 ? "today" : days === 1 ? "yesterday" : days <= 7 ? "week" : "earlier";
}

/** The title as it is shown: the server's stand-in for none is translated. */
export function titled(title) {
  return !title || title === "New chat" ? say("untitled") : title;
}
