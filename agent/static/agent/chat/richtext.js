// Text that grows: what is finished is built once, only the last block is built again, and a plain word is just appended.

import { blocks, finalLength } from "./blocks.js";

const PLAIN = /^[^`*_[\]\\#>|\n:/+•-]*$/;
const MAYBE_LIST = /^\s*\d{1,9}[.)]?\s?$/; // "1" is a number until it becomes "1. "

export class RichText {
  constructor(element) {
    this.element = element;
    this.text = "";
    this.built = 0; // how much of the text the page shows
    this.final = 0; // how much of it will not change
    this.tail = [];
    this.frame = 0;
  }

  /** Add text; it is shown with the next picture the browser draws. */
  append(delta) {
    this.text += delta;
    this.frame ||= requestAnimationFrame(() => this.flush());
  }

  /** Show everything now. */
  flush() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const delta = this.text.slice(this.built);
    if (!delta) return;
    this.built = this.text.length;
    if (!this.#appendPlain(delta)) this.#rebuild();
  }

  #appendPlain(delta) {
    const last = this.tail.at(-1);
    const inner = last?.lastChild;
    const continues = last?.tagName === "P" && inner?.nodeType === Node.TEXT_NODE;
    // With a mark anywhere in the block, all of it must be looked at again.
    if (!continues || !PLAIN.test(delta) || !PLAIN.test(inner.data) || MAYBE_LIST.test(inner.data)) return false;
    inner.appendData(delta);
    return true;
  }

  #rebuild() {
    for (const node of this.tail) node.remove();
    const done = finalLength(this.text.slice(this.final));
    if (done) {
      this.element.append(...blocks(this.text.slice(this.final, this.final + done)));
      this.final += done;
    }
    this.tail = blocks(this.text.slice(this.final));
    this.element.append(...this.tail);
  }
}
