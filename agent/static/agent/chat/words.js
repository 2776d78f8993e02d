// Every sentence the script shows comes from the page's template, where Django has translated it.

const words = new Map();
let spoken; // undefined: the browser's

export function loadWords(root) {
  spoken = root.dataset.language || undefined;
  for (const word of root.querySelector("[data-words]").content.querySelectorAll("[data-word]")) {
    words.set(word.dataset.word, word.textContent);
  }
}

/** The language of the page, for dates and numbers. */
export function language() {
  return spoken;
}

/** The sentence of this name, with `{names}` filled in. */
export function say(name, values = {}) {
  const text = words.get(name) ?? name;
  return text.replace(/\{(\w+)\}/g, (whole, key) => String(values[key] ?? whole));
}

/** An error in words: ours for the codes we know, else the server's own sentence. */
export function explain(error) {
  const known = words.get(`code_${error.code}`);
  if (error.code === "quota_exceeded" || error.code === "run_failed") return error.message || known;
  if (known) return known;
  if (error.status === 429) return say("code_throttled");
  if (error.status >= 500 || !error.message) return say("code_server");
  const fields = Object.entries(error.fields ?? {}).map(([name, texts]) => `${name}: ${texts.join(" ")}`);
  return fields.length ? fields.join(" ") : error.message;
}

/** `look_up_order` -> `Look up order`. */
export function humanise(name) {
  const spaced = name.replace(/[_-]+/g, " ").trim();
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}
