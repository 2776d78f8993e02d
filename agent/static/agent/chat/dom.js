// Elements are built, never parsed: nothing a person or a model wrote becomes markup.

/** An element with properties and children; `data` and `aria` go to their attributes, null children are left out. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  const { data = {}, aria = {}, on = {}, ...rest } = properties;
  Object.assign(element, rest);
  Object.assign(element.dataset, data);
  for (const [name, value] of Object.entries(aria)) element.setAttribute(`aria-${name}`, value);
  for (const [name, listener] of Object.entries(on)) element.addEventListener(name, listener);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A button that does one thing. */
export function button(text, onClick, properties = {}) {
  return make("button", { type: "button", className: "agent-button agent-quiet", on: { click: onClick }, ...properties }, text);
}

/** The part of the fragment that carries `data-<name>`. */
export function part(root, name) {
  return root.querySelector(`[data-${name}]`);
}

/** Wait; resolves early, with false, when the signal says so. */
export function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve(false);
      return;
    }
    const stop = () => {
      clearTimeout(timer);
      resolve(false);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve(true);
    }, milliseconds);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
