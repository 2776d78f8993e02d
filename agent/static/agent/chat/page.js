// The chat page: finds its element, learns what this site offers, and connects the parts.

import { Api, ApiError } from "./api.js";
import { Composer } from "./composer.js";
import { Conversation } from "./conversation.js";
import { part } from "./dom.js";
import { Drafts } from "./drafts.js";
import { Live } from "./live.js";
import { Scroller } from "./scroller.js";
import { Sidebar, titled } from "./sidebar.js";
import { Store } from "./store.js";
import { ask } from "./views/dialog.js";
import { Notices } from "./views/notice.js";
import { explain, loadWords, say } from "./words.js";

class Page {
  constructor(root) {
    this.root = root;
    loadWords(root);
    const { api, csrfCookie, language } = root.dataset;
    this.api = new Api({ base: api, csrfCookie, csrfInput: root.querySelector("[name=csrfmiddlewaretoken]") });
    this.store = new Store({
      threads: [], threadsLoaded: false, threadId: null, title: "", defaultAgent: null, busy: false, runId: null,
      editing: null, agents: [], agent: null, models: [], model: null, queueing: false,
    });
    this.drafts = new Drafts();
    this.notices = new Notices(part(root, "notices"));
    this.scroller = new Scroller(part(root, "log"), part(root, "latest"));
    this.acts = {
      again: () => this.conversation.regenerate(),
      ask: (text) => this.ask(text),
      branch: (message) => this.branch(message),
      edit: (message) => this.edit(message),
      decide: (choice, body, target) => this.decide(choice, body, target),
      feedback: (message, value, shown) => this.feedback(message, value, shown),
    };
    this.agentLabel = (name) => this.store.get("agents").find((agent) => agent.name === name)?.label ?? say("agent");
    this.composer = new Composer(root, { store: this.store, drafts: this.drafts, page: this, on: {
      send: (text) => this.conversation.send(text),
      stop: () => this.conversation.stop(),
      cancelEditing: () => this.cancelEditing(),
    } });
    this.sidebar = new Sidebar(root, { api: this.api, store: this.store, language, address: (id) => this.address(id), on: {
      open: (id) => this.go(id),
      fresh: () => this.go(null),
      failed: (error) => this.failed(error),
    } });
    const { store, drafts, notices, scroller } = this;
    this.conversation = new Conversation({ root, api: this.api, store, drafts, notices, scroller, page: this });
    this.live = new Live(root.dataset.socket, () => this.conversation.refresh());
    store.show(["threadId"], () => this.live.watch(store.get("threadId")));
    this.#listen();
    this.#show();
  }

  async start() {
    const wanted = this.root.dataset.thread || new URL(location.href).searchParams.get(this.root.dataset.parameter);
    const catalogues = this.#learn();
    const threads = this.#loadThreads();
    await catalogues;
    this.root.toggleAttribute("data-ready", true);
    await this.conversation.open(wanted || null);
    if (matchMedia("(pointer: fine)").matches) this.composer.focus();
    await threads;
  }

  /** Open a conversation as the reader asked for it: the address tells, so back and reload work. */
  go(threadId) {
    history.pushState({}, "", this.address(threadId));
    this.conversation.open(threadId);
    this.composer.focus();
  }

  address(threadId) {
    const url = new URL(location.href);
    if (threadId) url.searchParams.set(this.root.dataset.parameter, threadId);
    else url.searchParams.delete(this.root.dataset.parameter);
    return url.pathname + url.search;
  }

  // ---- what the conversation tells the page ---------------------------------------------------------------------------

  /** The empty conversation has become a thread. */
  begun(threadId, place) {
    place.threadId = threadId;
    history.replaceState({}, "", this.address(threadId));
    this.store.set({ threadId });
    this.drafts.keep(null, "");
  }

  touched(threadId) {
    this.sidebar.touch({ id: threadId });
  }

  titled(title) {
    this.store.set({ title });
    this.sidebar.change(this.store.get("threadId"), { title });
  }

  /** The list anew, and the open conversation if it has gone on elsewhere. */
  async refresh() {
    await this.#loadThreads();
    await this.conversation.refresh();
  }

  announce(text) {
    part(this.root, "status").textContent = text;
  }

  /** Say what went wrong and what can be done about it. */
  failed(error, { again = null, label = say("reload"), kept = false } = {}) {
    const acts = [];
    if (error.code === "not_authenticated") acts.push([say("sign_in"), () => location.assign(this.#signIn())]);
    else if (error.code === "not_found") acts.push([say("new"), () => this.go(null)]);
    else if (again && error.status !== 403) acts.push([label, again]);
    const sentences = [explain(error), kept ? say("kept") : ""].filter(Boolean);
    this.notices.show(sentences.join(" "), { kind: error.code === "run_active" ? "info" : "error", acts });
  }

  // ---- what the reader may do with messages and conversations ------------------------------------------------------------

  /** A question that was suggested; what is being written in the box stays there. */
  ask(text) {
    if (this.store.get("editing")) this.cancelEditing();
    const draft = this.composer.text;
    this.conversation.send(text);
    if (draft) this.composer.text = draft;
  }

  /** A decision about a call, or about the proposal that stands for it. */
  async decide(choice, body, target) {
    if (!target) return this.api.post(`tool-call/${choice}`, body);
    const { toolCallId, ...rest } = body;
    const proposal = `threads/${encodeURIComponent(this.store.get("threadId"))}/action-proposals/${encodeURIComponent(target.proposalId)}`;
    const { status } = await this.api.post(`${proposal}/${choice}`, rest);
    if (status === "expired") throw new ApiError({ status: 410, code: "approval_expired", message: say("card_expired") });
    if (status === "conflict") throw new ApiError({ status: 409, code: "already_decided", message: say("card_decided") });
    return null;
  }

  edit(message) {
    if (this.store.get("busy")) return;
    this.store.set({ editing: { messageId: message.id, before: this.store.get("editing")?.before ?? this.composer.text } });
    this.composer.text = message.content;
    this.composer.focus();
  }

  cancelEditing() {
    const { before } = this.store.get("editing");
    this.store.set({ editing: null });
    this.composer.text = before;
    this.composer.focus();
  }

  async branch(message) {
    await this.#attempt(async () => {
      const thread = encodeURIComponent(this.store.get("threadId"));
      const summary = await this.api.post(`threads/${thread}/fork-from/${encodeURIComponent(message.id)}`);
      this.sidebar.touch(summary);
      history.pushState({}, "", this.address(summary.id));
      await this.conversation.open(summary.id);
      this.notices.show(say("branched"), { kind: "info" });
      this.composer.focus();
    });
  }

  async feedback(message, value, shown) {
    await this.#attempt(async () => {
      const path = `messages/${encodeURIComponent(message.id)}/feedback`;
      message.feedback = (await this.api.post(path, { value })).feedback;
      shown();
      if (value) this.announce(say("thanks"));
      if (value !== "down") return;
      const comment = await ask(this.root, { title: say("down_title"), label: say("down_label"), yes: say("down_yes"), required: false });
      if (comment) message.feedback = (await this.api.post(path, { value, comment })).feedback;
    });
  }

  async rename() {
    const id = this.store.get("threadId");
    const value = titled(this.store.get("title"));
    const title = await ask(this.root, { title: say("rename_title"), label: say("rename_label"), value, yes: say("rename_yes") });
    if (!title) return;
    await this.#attempt(async () => {
      await this.api.patch(`threads/${encodeURIComponent(id)}`, { title });
      this.titled(title);
    });
  }

  async remove() {
    const id = this.store.get("threadId");
    const text = say("delete_text", { title: titled(this.store.get("title")) });
    if (!(await ask(this.root, { title: say("delete_title"), text, yes: say("delete_yes") }))) return;
    await this.#attempt(async () => {
      await this.api.delete(`threads/${encodeURIComponent(id)}`);
      this.sidebar.remove(id);
      this.go(null);
      this.announce(say("deleted"));
    });
  }

  async #attempt(act) {
    try {
      await act();
    } catch (error) {
      this.failed(error);
    }
  }

  // ---- setting up ----------------------------------------------------------------------------------------------------------

  #listen() {
    part(this.root, "rename").addEventListener("click", () => this.rename());
    part(this.root, "delete").addEventListener("click", () => this.remove());
    document.addEventListener("click", (event) => {
      if (!event.target.closest(".agent-menu > summary")) part(this.root, "menu").open = false;
    });
    for (const suggestion of this.root.querySelectorAll("[data-suggestion]")) {
      suggestion.addEventListener("click", () => this.conversation.send(suggestion.textContent.trim()));
    }
    for (const name of ["agent", "model"]) {
      part(this.root, `${name}-select`).addEventListener("change", (event) => this.store.set({ [name]: event.target.value || null }));
    }
    document.addEventListener("keydown", (event) => this.#escape(event));
    window.addEventListener("popstate", () => this.conversation.open(new URL(location.href).searchParams.get(this.root.dataset.parameter)));
    const look = () => {
      if (document.visibilityState === "visible" && this.store.get("threadsLoaded")) this.refresh();
    };
    document.addEventListener("visibilitychange", look);
    window.addEventListener("focus", look);
  }

  #escape(event) {
    if (event.key !== "Escape" || event.isComposing || part(this.root, "dialog").open) return;
    if (part(this.root, "menu").open) this.#closeMenu();
    else if (this.root.hasAttribute("data-drawer")) this.sidebar.drawer(false);
    else if (this.store.get("busy")) this.conversation.stop();
    else if (this.store.get("editing")) this.cancelEditing();
  }

  #closeMenu() {
    part(this.root, "menu").open = false;
    part(this.root, "menu").querySelector("summary").focus();
  }

  #show() {
    const { store } = this;
    store.show(["title", "threadId"], () => {
      part(this.root, "title").textContent = titled(store.get("title"));
      part(this.root, "menu").hidden = store.get("threadId") === null;
    });
    store.show(["editing"], () => {
      const id = store.get("editing")?.messageId;
      for (const own of this.root.querySelectorAll(".agent-own")) own.toggleAttribute("data-changing", own.dataset.message === id);
    });
    store.show(["busy"], () => this.root.toggleAttribute("data-busy", Boolean(store.get("busy"))));
    store.show(["agents", "agent"], () => {
      const agents = store.get("agents");
      const chosen = agents.find(({ name }) => name === (this.root.dataset.agent || store.get("agent"))) ?? agents[0];
      if (!chosen) return;
      part(this.root, "welcome-title").textContent = chosen.label;
      part(this.root, "welcome-text").textContent = chosen.description ?? "";
    });
  }

  async #loadThreads() {
    try {
      await this.sidebar.load();
      this.store.set({ threadsLoaded: true, threads: [...this.store.get("threads")] });
    } catch (error) {
      this.failed(error, { again: () => this.#loadThreads() });
    }
  }

  async #learn() {
    const named = this.root.dataset.agent ? `?agent=${encodeURIComponent(this.root.dataset.agent)}` : "";
    const [config, agents, models] = await Promise.all(
      ["config", "agents", `models${named}`].map((path) => this.api.get(path).catch(() => null)),
    );
    this.store.set({ agents: agents ?? [], models: models ?? [], queueing: Boolean(config?.queue?.enabled) });
    this.composer.files.offer(config?.attachments ?? null);
    if (!named) this.#offer("agent", (agents ?? []).map(({ name, label }) => ({ value: name, text: say("agent_named", { agent: label }) })), 2);
    const offered = config?.models?.enabled ? (models ?? []).filter(({ available }) => available) : [];
    const usual = { value: "", text: say("default_model") };
    const choices = offered.map(({ id, label }) => ({ value: id, text: say("model_named", { model: label }) }));
    this.#offer("model", choices.length ? [usual, ...choices] : [], 2);
  }

  #offer(name, choices, least) {
    part(this.root, `${name}-picker`).hidden = choices.length < least;
    part(this.root, `${name}-select`).replaceChildren(...choices.map(({ value, text }) => new Option(text, value)));
  }

  #signIn() {
    return `${this.root.dataset.login}?next=${encodeURIComponent(location.pathname + location.search)}`;
  }
}

for (const root of document.querySelectorAll("[data-agent-chat]")) new Page(root).start();
