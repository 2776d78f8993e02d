// One dialog for the few questions the page asks.

import { part } from "../dom.js";

/** Resolves to the text that was given, to true where none was asked for, or to null when the reader thought better. */
export function ask(root, { title, text = "", label = "", value = "", yes, required = true }) {
  const dialog = part(root, "dialog");
  const input = part(dialog, "dialog-input");
  part(dialog, "dialog-title").textContent = title;
  part(dialog, "dialog-text").textContent = text;
  part(dialog, "dialog-text").hidden = !text;
  part(dialog, "dialog-label").hidden = !label;
  part(dialog, "dialog-label-text").textContent = label;
  part(dialog, "dialog-yes").textContent = yes;
  input.value = value;
  input.required = Boolean(label) && required;
  dialog.returnValue = "";
  part(dialog, "dialog-no").onclick = () => dialog.close("");
  dialog.showModal();
  if (label) input.select();
  return new Promise((resolve) => {
    dialog.addEventListener(
      "close",
      () => {
        if (dialog.returnValue !== "yes") resolve(null);
        else resolve(label ? input.value.trim() : true);
      },
      { once: true },
    );
  });
}
