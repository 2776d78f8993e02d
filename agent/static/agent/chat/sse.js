// Server-sent events out of a response body, as they arrive.

export class EventReader {
  #reader;

  constructor(body) {
    this.#reader = body.pipeThrough(new TextDecoderStream()).getReader();
  }

  /** Ends the reading, also one that waits for bytes. */
  cancel() {
    this.#reader.cancel().catch(() => {});
  }

  /** Yields `{event, id, data}`; a comment (the server's ping) is yielded as `{event: "ping"}`. */
  async *events() {
    let rest = "";
    let fields = newEvent();
    for (;;) {
      const { value, done } = await this.#reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        const text = line.endsWith("\r") ? line.slice(0, -1) : line;
        if (text.startsWith(":")) {
          yield { event: "ping", id: null, data: "" };
        } else if (text !== "") {
          take(text, fields);
        } else {
          if (fields.data.length) yield { ...fields, data: fields.data.join("\n") };
          fields = newEvent();
        }
      }
    }
  }
}

function newEvent() {
  return { event: "message", id: null, data: [] };
}

function take(line, fields) {
  const colon = line.indexOf(":");
  const name = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
  if (name === "data") fields.data.push(value);
  if (name === "event") fields.event = value;
  if (name === "id") fields.id = value;
}
