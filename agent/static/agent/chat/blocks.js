// Paragraphs, headings, lists, quotes, tables and code out of plain text.

import { button, make } from "./dom.js";
import { inline } from "./inline.js";
import { say } from "./words.js";

const FENCE = /^\s{0,3}(```+|~~~+)\s*([\w+#.-]*)/;
const HEADING = /^(#{1,6})\s+(.*)$/;
const ITEM = /^(\s*)([-*+•]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^\s?>\s?(.*)$/;
const RULE = /^\s*([-*_])(\s*\1){2,}\s*$/;
const TABLE_RULE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

/** The elements that show this text. */
export function blocks(text) {
  const lines = text.split("\n");
  const elements = [];
  let at = 0;
  while (at < lines.length) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    const [element, next] = block(lines, at);
    elements.push(element);
    at = next;
  }
  return elements;
}

/** Where the text may be cut for good: after a blank line outside code. What comes before will not change any more. */
export function finalLength(text) {
  let fence = null;
  let end = 0;
  let at = 0;
  let newline;
  while ((newline = text.indexOf("\n", at)) >= 0) {
    const line = text.slice(at, newline);
    const mark = FENCE.exec(line)?.[1];
    if (fence === null && mark) fence = mark;
    else if (fence !== null && closes(line, fence)) fence = null;
    at = newline + 1;
    if (fence === null && !line.trim()) end = at;
  }
  return end;
}

function block(lines, at) {
  if (FENCE.test(lines[at])) return code(lines, at);
  if (HEADING.test(lines[at])) return heading(lines, at);
  if (RULE.test(lines[at])) return [make("hr"), at + 1];
  if (ITEM.test(lines[at])) return list(lines, at);
  if (QUOTE.test(lines[at])) return quote(lines, at);
  if (lines[at].includes("|") && TABLE_RULE.test(lines[at + 1] ?? "") && lines[at + 1].includes("-")) return table(lines, at);
  return paragraph(lines, at);
}

function closes(line, fence) {
  const text = line.trim();
  return text.length >= fence.length && text === fence[0].repeat(text.length);
}

function code(lines, at) {
  const [, fence, language] = FENCE.exec(lines[at]);
  let end = at + 1;
  while (end < lines.length && !closes(lines[end], fence)) end += 1;
  const text = lines.slice(at + 1, end).join("\n");
  const copy = navigator.clipboard
    ? button(say("copy"), () => navigator.clipboard.writeText(text), { aria: { label: say("copy_code") } })
    : null;
  const head = make("div", { className: "agent-code-head" }, make("span", {}, language), copy);
  const pre = make("pre", { tabIndex: 0 }, make("code", {}, text));
  return [make("div", { className: "agent-code", dir: "ltr" }, head, pre), end + 1];
}

function heading(lines, at) {
  const [, marks, text] = HEADING.exec(lines[at]);
  // Inside a message, below the page's own headings.
  const level = Math.min(6, marks.length + 3);
  return [make(`h${level}`, { dir: "auto" }, ...inline(text.replace(/\s+#+\s*$/, ""))), at + 1];
}

function paragraph(lines, at) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !startsOther(lines[end])) end += 1;
  const element = make("p", { dir: "auto" });
  lines.slice(at, end).forEach((line, place) => {
    if (place) element.append(make("br"));
    element.append(...inline(line));
  });
  return [element, end];
}

function startsOther(line) {
  return FENCE.test(line) || HEADING.test(line) || ITEM.test(line) || QUOTE.test(line);
}

function quote(lines, at) {
  let end = at;
  const inner = [];
  while (end < lines.length && QUOTE.test(lines[end])) {
    inner.push(QUOTE.exec(lines[end])[1]);
    end += 1;
  }
  return [make("blockquote", {}, ...blocks(inner.join("\n").replace(/^>+/gm, ""))), end];
}

function list(lines, at) {
  const [, indent, mark] = ITEM.exec(lines[at]);
  const ordered = /\d/.test(mark);
  const element = make(ordered ? "ol" : "ul", { dir: "auto" });
  if (ordered) element.start = Number.parseInt(mark, 10);
  let end = at;
  while (end < lines.length) {
    const item = ITEM.exec(lines[end]);
    if (!item || item[1].length < indent.length || (item[1].length === indent.length && /\d/.test(item[2]) !== ordered)) break;
    const [child, next] = listItem(lines, end, indent.length);
    element.append(child);
    end = next;
  }
  return [element, end];
}

/** One item with the lines that belong to it: plain ones go on, deeper items are a list of their own. */
function listItem(lines, at, indent) {
  const element = make("li", {}, ...inline(ITEM.exec(lines[at])[3]));
  let end = at + 1;
  while (end < lines.length && lines[end].trim()) {
    const deeper = ITEM.exec(lines[end]);
    if (deeper && deeper[1].length <= indent) break;
    if (deeper) {
      const [inner, next] = list(lines, end);
      element.append(inner);
      end = next;
    } else if (FENCE.test(lines[end]) || HEADING.test(lines[end])) {
      break;
    } else {
      element.append(make("br"), ...inline(lines[end].trim()));
      end += 1;
    }
  }
  return [element, end];
}

function table(lines, at) {
  const head = make("tr", {}, ...cells(lines[at]).map((text) => make("th", { scope: "col" }, ...inline(text))));
  const body = make("tbody");
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|")) {
    body.append(make("tr", {}, ...cells(lines[end]).map((text) => make("td", {}, ...inline(text)))));
    end += 1;
  }
  const element = make("table", { dir: "auto" }, make("thead", {}, head), body);
  return [make("div", { className: "agent-table", tabIndex: 0 }, element), end];
}

function cells(line) {
  return line.trim().replace(/^\|/, "").replace(/\|$/, "").split("|").map((cell) => cell.trim());
}
