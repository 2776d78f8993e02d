// What was typed and not yet accepted, kept over reloads: nothing a person wrote is lost.

const PREFIX = "agent-chat:";
const NEW = "new";

export class Drafts {
  constructor(storage = window.sessionStorage) {
    this.storage = storage;
  }

  text(threadId) {
    return this.#read(`draft:${threadId ?? NEW}`)?.text ?? "";
  }

  keep(threadId, text) {
    this.#write(`draft:${threadId ?? NEW}`, text ? { text } : null);
  }

  /** A message is on its way. The same text sent again has the same key, so the server takes it once. */
  sending(threadId, text) {
    const name = `sending:${threadId ?? NEW}`;
    const known = this.#read(name);
    const key = known?.text === text ? known.key : newKey();
    this.#write(name, { text, key });
    return key;
  }

  /** The server has it. */
  accepted(threadId) {
    this.#write(`sending:${threadId ?? NEW}`, null);
  }

  /** What was on its way when the page went. */
  unaccepted(threadId) {
    return this.#read(`sending:${threadId ?? NEW}`)?.text ?? "";
  }

  #read(name) {
    try {
      return JSON.parse(this.storage.getItem(PREFIX + name));
    } catch {
      return null; // storage is off, or holds somebody else's
    }
  }

  #write(name, value) {
    try {
      if (value === null) this.storage.removeItem(PREFIX + name);
      else this.storage.setItem(PREFIX + name, JSON.stringify(value));
    } catch {
      // Full or forbidden: the box on the page still has the text.
    }
  }
}

// crypto.randomUUID is there on secure origins only; a demo on another machine of the house is none.
function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
