// Marks inside a line: `code`, **strong**, *emphasis*, [links](https://...) and bare addresses. Built, never parsed as HTML.

import { make } from "./dom.js";

const STARTS = /[`*_[h\\]/g;
const ADDRESS = /^https?:\/\/[^\s<>"'`]+/;
const DEPTH_MOST = 4;

/** The nodes that show this text. */
export function inline(text, depth = 0) {
  const nodes = [];
  const missing = new Set(); // closing marks that are not there: looked for once, so that the work stays linear
  let plain = 0;
  let at = 0;
  while (at < text.length) {
    STARTS.lastIndex = at;
    const start = STARTS.exec(text);
    if (!start) break;
    const found = marked(text, start.index, { missing, depth });
    if (found) {
      if (start.index > plain) nodes.push(text.slice(plain, start.index));
      nodes.push(...found.nodes);
      at = found.end;
      plain = at;
    } else {
      at = start.index + 1;
    }
  }
  if (plain < text.length) nodes.push(text.slice(plain));
  return nodes;
}

function marked(text, at, state) {
  const sign = text[at];
  if (sign === "`") return code(text, at, state);
  if (sign === "[") return link(text, at, state);
  if (sign === "h") return address(text, at);
  if (sign === "\\") return escaped(text, at);
  if (text[at + 1] === sign) return span(text, at, { mark: sign + sign, tag: "strong", ...state });
  return span(text, at, { mark: sign, tag: "em", ...state });
}

function code(text, at, { missing }) {
  let length = 1;
  while (text[at + length] === "`") length += 1;
  const mark = "`".repeat(length);
  const end = closing(text, mark, at + length, missing);
  if (end < 0) return null;
  return { nodes: [make("code", {}, text.slice(at + length, end).trim())], end: end + length };
}

function span(text, at, { mark, tag, missing, depth }) {
  const from = at + mark.length;
  if (depth >= DEPTH_MOST || /\s|^$/.test(text[from] ?? "")) return null;
  // snake_case_names are words, and 2*3*4 is a sum.
  if (mark[0] === "_" && /\w/.test(text[at - 1] ?? "")) return null;
  if (mark === "*" && /\d/.test(text[at - 1] ?? "")) return null;
  const end = closing(text, mark, from, missing);
  if (end <= from || /\s/.test(text[end - 1])) return null;
  if (mark[0] === "_" && /\w/.test(text[end + mark.length] ?? "")) return null;
  return { nodes: [make(tag, {}, ...inline(text.slice(from, end), depth + 1))], end: end + mark.length };
}

function link(text, at, { missing, depth }) {
  const middle = closing(text, "](", at + 1, missing);
  if (middle < 0 || depth >= DEPTH_MOST) return null;
  const end = closing(text, ")", middle + 2, missing);
  const url = end < 0 ? null : safeAddress(text.slice(middle + 2, end));
  if (!url) return null;
  return { nodes: [anchor(url, inline(text.slice(at + 1, middle), DEPTH_MOST))], end: end + 1 };
}

function address(text, at) {
  if (/\w/.test(text[at - 1] ?? "")) return null;
  const found = ADDRESS.exec(text.slice(at, at + 2000));
  if (!found) return null;
  const shown = found[0].replace(/[.,;:!?)\]*]+$/, "");
  const url = safeAddress(shown);
  return url ? { nodes: [anchor(url, [shown])], end: at + shown.length } : null;
}

function escaped(text, at) {
  return /[`*_[\]\\]/.test(text[at + 1] ?? "") ? { nodes: [text[at + 1]], end: at + 2 } : null;
}

function closing(text, mark, from, missing) {
  if (missing.has(mark)) return -1;
  const found = text.indexOf(mark, from);
  if (found < 0) missing.add(mark);
  return found;
}

/** Only http and https lead anywhere. */
function safeAddress(text) {
  try {
    const url = new URL(text.trim());
    return ["http:", "https:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

function anchor(href, children) {
  return make("a", { href, target: "_blank", rel: "noopener noreferrer nofollow", title: href }, ...children);
}
