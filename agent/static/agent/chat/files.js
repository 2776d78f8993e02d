// Files that go with the next message: chosen, dropped or pasted, uploaded at once, and removed again.

import { ApiError } from "./api.js";
import { button, make, part } from "./dom.js";
import { say } from "./words.js";

const MOST = 10;

export class Files {
  /** `page`: its api, failed(error), announce(text). */
  constructor(root, page) {
    Object.assign(this, { page, api: page.api, files: [], taken: null });
    this.list = part(root, "files");
    this.input = part(root, "file-input");
    this.attach = part(root, "attach");
    this.attach.addEventListener("click", () => this.input.click());
    this.input.addEventListener("change", () => {
      this.add(this.input.files);
      this.input.value = "";
    });
    this.#listen(part(root, "composer"));
  }

  /** What the site takes; null = nothing, and nothing is offered. */
  offer(taken) {
    this.taken = taken;
    this.attach.hidden = !taken;
    if (taken) this.input.accept = taken.types.join(",");
  }

  get uploading() {
    return this.files.some(({ media }) => !media);
  }

  get any() {
    return this.files.length > 0;
  }

  /** Hand over what is there, for a message. */
  take() {
    const media = this.files.map((file) => file.media);
    this.#show([]);
    return media;
  }

  /** What a message carried that was not accepted. */
  giveBack(media) {
    this.#show([...media.map((one) => ({ name: one.name, media: one })), ...this.files]);
  }

  clear() {
    for (const file of this.files) this.#forget(file);
    this.#show([]);
  }

  add(chosen) {
    if (!this.taken) return;
    for (const blob of [...chosen].slice(0, MOST - this.files.length)) this.#upload(blob);
  }

  async #upload(blob) {
    const file = { name: blob.name, media: null, progress: make("progress", { max: 1, value: 0, aria: { label: blob.name } }) };
    this.#show([...this.files, file]);
    try {
      if (blob.size > this.taken.maxBytes) throw new ApiError({ status: 413, code: "file_too_large" });
      file.media = await this.api.upload("attachments", blob, {
        sent: (share) => { file.progress.value = share; },
        started: (request) => { file.request = request; },
      });
      if (!this.files.includes(file)) this.#forget(file);
      else this.page.announce(say("file_ready", { name: file.name }));
      this.#show(this.files);
    } catch (error) {
      const wanted = this.files.includes(file);
      this.#show(this.files.filter((one) => one !== file));
      const code = error.code === "too_large" ? "file_too_large" : error.code;
      if (wanted) this.page.failed(new ApiError({ status: error.status, code, message: error.message }));
    }
  }

  #remove(file) {
    this.#show(this.files.filter((one) => one !== file));
    this.#forget(file);
    this.attach.focus();
  }

  // A message that was not accepted after all may carry it: then the server keeps it.
  #forget({ media, request }) {
    if (media) this.api.delete(`attachments/uploads/${encodeURIComponent(media.mediaId)}`).catch(() => {});
    else request?.abort();
  }

  #show(files) {
    this.files = files;
    this.list.hidden = !files.length;
    this.list.replaceChildren(...files.map((file) => make(
      "li",
      { className: "agent-file" },
      make("span", { className: "agent-file-name", dir: "auto" }, file.name),
      file.media ? null : file.progress,
      button("×", () => this.#remove(file), { title: say("file_remove", { name: file.name }), ariaLabel: say("file_remove", { name: file.name }) }),
    )));
  }

  #listen(form) {
    const carries = (event) => this.taken && [...(event.dataTransfer?.types ?? [])].includes("Files");
    form.addEventListener("dragover", (event) => {
      if (!carries(event)) return;
      event.preventDefault();
      form.toggleAttribute("data-drop", true);
    });
    form.addEventListener("dragleave", () => form.toggleAttribute("data-drop", false));
    form.addEventListener("drop", (event) => {
      form.toggleAttribute("data-drop", false);
      if (!carries(event)) return;
      event.preventDefault();
      this.add(event.dataTransfer.files);
    });
    form.addEventListener("paste", (event) => {
      if (!this.taken || !event.clipboardData?.files.length) return;
      event.preventDefault();
      this.add(event.clipboardData.files);
    });
  }
}

/** The files of a message that was said; one that is gone has no address. */
export function carried(attachments) {
  if (!attachments?.length) return null;
  return make("ul", { className: "agent-files" }, ...attachments.map(({ name, url }) => make(
    "li",
    { className: "agent-file" },
    url ? make("a", { href: url, target: "_blank", rel: "noopener" }, name)
      : make("span", { className: "agent-hint" }, say("file_gone", { name })),
  )));
}
