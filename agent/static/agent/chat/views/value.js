// What goes into a tool and comes out of it, for people: names and values, not JSON.

import { make } from "../dom.js";
import { humanise, language, say } from "../words.js";

const DEPTH_MOST = 4;
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/;
const ITEMS_MOST = 100;

/** An element or text that shows any JSON value. */
export function shownValue(value, depth = 0) {
  if (value === null || value === undefined || value === "") return say("nothing");
  if (value === true || value === false) return say(value ? "yes" : "no");
  if (isInstant(value)) return make("time", { dateTime: value }, instant(value));
  if (typeof value !== "object") return make("span", { className: "agent-value", dir: "auto" }, String(value));
  if (depth >= DEPTH_MOST) return make("code", {}, JSON.stringify(value));
  return Array.isArray(value) ? list(value, depth) : names(value, depth);
}

// An instant as programs write it, in the reader's own time and language.
function isInstant(value) {
  return typeof value === "string" && INSTANT.test(value) && !Number.isNaN(Date.parse(value));
}

function instant(value) {
  return new Intl.DateTimeFormat(language(), { dateStyle: "medium", timeStyle: "short" }).format(new Date(value));
}

function names(value, depth) {
  const entries = Object.entries(value).filter(([, inner]) => !isEmpty(inner));
  if (!entries.length) return say("nothing");
  const rows = entries
    .slice(0, ITEMS_MOST)
    .map(([name, inner]) => row(name, inner, depth));
  return make("dl", { className: "agent-values" }, ...rows, rest(entries));
}

function row(name, inner, depth) {
  const nested = typeof inner === "object" && !(Array.isArray(inner) && inner.every((value) => typeof value !== "object"));
  const term = make("dt", {}, humanise(name));
  return make("div", { className: nested ? "agent-nested" : "" }, term, make("dd", {}, shownValue(inner, depth + 1)));
}

function list(values, depth) {
  if (!values.length) return say("nothing");
  if (values.every((value) => typeof value !== "object")) return make("span", { dir: "auto" }, values.join(", "));
  const items = values.slice(0, ITEMS_MOST).map((value) => make("li", {}, shownValue(value, depth + 1)));
  return make("ul", { className: "agent-values" }, ...items, rest(values));
}

function isEmpty(value) {
  return value === null || value === "" || (Array.isArray(value) && !value.length);
}

function rest(all) {
  return all.length > ITEMS_MOST ? make("p", {}, "…") : null;
}
