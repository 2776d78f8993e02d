/* The live page: news as they come over a stream; where there is none, the page is read again every five seconds. */

const POLL_MS = 5000;
const SETTLE_MS = 1000; // one look after many news
const KEPT = 100;

const place = document.querySelector("[data-gov-live]");
const state = document.querySelector("[data-gov-live-state]");
const list = document.querySelector("[data-gov-tail]");
const REFRESHED = [".gov-answer", ".gov-cards", "[data-gov-refreshed]"];

let waiting = null;
let polling = null;

async function refresh() {
  waiting = null;
  const answer = await fetch(location.href, { credentials: "same-origin" }).catch(() => null);
  if (!answer?.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const selector of REFRESHED) {
    const [old, fresh] = [place.querySelector(selector), page.querySelector(`[data-gov-live] ${selector}`)];
    if (old && fresh && !old.contains(document.activeElement)) old.replaceWith(fresh);
  }
}

function soon() {
  waiting ??= setTimeout(refresh, SETTLE_MS);
}

function poll() {
  state.textContent = state.dataset.polling;
  polling ??= setInterval(refresh, POLL_MS);
}

function told(news) {
  const { agentName, toolName, status, code, durationMs, runId } = news.payload;
  const took = durationMs == null ? null : `${durationMs} ms`;
  const words = [new Date(news.ts).toLocaleTimeString(), news.event, toolName, status, code, agentName, took];
  return [...words, runId?.slice(-8)].filter(Boolean).join(" · ");
}

function show(news) {
  const line = document.createElement("li");
  line.textContent = told(news);
  list.prepend(line);
  while (list.children.length > KEPT) list.lastChild.remove();
  list.closest("[data-gov-tail-place]").hidden = false;
}

function follow() {
  if (!place.dataset.stream || !window.EventSource) return poll();
  const stream = new EventSource(place.dataset.stream);
  stream.addEventListener("open", () => {
    clearInterval(polling);
    polling = null;
    state.textContent = state.dataset.live;
    soon();
  });
  stream.addEventListener("news", (event) => {
    show(JSON.parse(event.data));
    soon();
  });
  stream.addEventListener("error", poll); // it comes back by itself; closed for good, it does not
  window.addEventListener("pagehide", () => stream.close());
}

if (place) follow();
