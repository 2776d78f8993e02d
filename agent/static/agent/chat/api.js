// The agent's HTTP interface: JSON in and out, errors as values with a code.

export class ApiError extends Error {
  constructor({ status, code, message = "", fields = {} }) {
    super(message);
    this.status = status; // 0 = no answer came
    this.code = code;
    this.fields = fields;
  }
}

export class Api {
  constructor({ base, csrfCookie, csrfInput }) {
    this.base = base;
    this.csrfCookie = csrfCookie;
    this.csrfInput = csrfInput;
  }

  get(path) {
    return this.#json("GET", path);
  }

  post(path, body) {
    return this.#json("POST", path, body);
  }

  patch(path, body) {
    return this.#json("PATCH", path, body);
  }

  delete(path) {
    return this.#json("DELETE", path);
  }

  /** The bare response of a route that may stream; refused ones are thrown as `ApiError`. */
  async open(path, { method = "GET", body, headers = {}, signal } = {}) {
    const all = { Accept: "text/event-stream, application/json", ...headers };
    if (body !== undefined) all["Content-Type"] = "application/json";
    if (method !== "GET") all["X-CSRFToken"] = this.#csrfToken();
    let response;
    try {
      const text = body === undefined ? undefined : JSON.stringify(body);
      response = await fetch(this.base + path, { method, headers: all, body: text, signal, credentials: "same-origin" });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ApiError({ status: 0, code: "offline" });
    }
    if (!response.ok) throw await refusal(response);
    return response;
  }

  /** Send one file; `sent` is told the share that is through, `started` what can stop it. */
  upload(path, blob, { sent, started }) {
    const request = new XMLHttpRequest(); // fetch tells nothing about what has been sent
    const form = new FormData();
    form.append("file", blob, blob.name);
    return new Promise((resolve, reject) => {
      request.upload.addEventListener("progress", ({ loaded, total }) => sent(total ? loaded / total : 0));
      request.addEventListener("error", () => reject(new ApiError({ status: 0, code: "offline" })));
      request.addEventListener("abort", () => reject(new ApiError({ status: 0, code: "offline" })));
      request.addEventListener("load", () => {
        const answer = new Response(request.responseText, { status: request.status });
        (answer.ok ? answer.json() : refusal(answer).then((error) => Promise.reject(error))).then(resolve, reject);
      });
      request.open("POST", this.base + path);
      request.setRequestHeader("X-CSRFToken", this.#csrfToken());
      started(request);
      request.send(form);
    });
  }

  async #json(method, path, body) {
    const response = await this.open(path, { method, body, headers: { Accept: "application/json" } });
    if (response.status === 204) return null;
    try {
      return await response.json();
    } catch {
      throw new ApiError({ status: 0, code: "offline" });
    }
  }

  // A sign-in in another tab gives a new cookie; the page's own field serves hosts whose cookie no script may read.
  #csrfToken() {
    const start = `${this.csrfCookie}=`;
    const found = document.cookie.split("; ").find((cookie) => cookie.startsWith(start));
    return found ? decodeURIComponent(found.slice(start.length)) : (this.csrfInput?.value ?? "");
  }
}

async function refusal(response) {
  const told = await response.json().catch(() => ({}));
  const code = told.code ?? { 401: "not_authenticated", 403: "forbidden", 404: "not_found", 413: "too_large" }[response.status];
  return new ApiError({ status: response.status, code: code ?? "server", message: told.message, fields: told.fields });
}
