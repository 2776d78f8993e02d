/* The inbox: cards are decided in their place and turn into what became of them, new ones come by themselves, and
   the keys j, k, Enter, a and r go through them. Without this script every form still works with a page of its own. */

const POLL_MS = 5000; // while there is no live connection
const LOOK_MS = 1500; // at a card that is under way
const NET_MS = 60000; // a look without news: deadlines pass without any
const CARD = { "X-Card": "1" };

const place = document.querySelector("[data-gov-inbox]");
const list = place?.querySelector("[data-gov-cards]");
const said = place?.querySelector("[data-gov-inbox-said]");

const cards = () => [...list.querySelectorAll("[data-gov-card]")];
const parsed = (text) => new DOMParser().parseFromString(text, "text/html");
const isBusy = (card) => card.dataset.deciding !== undefined || card.contains(document.activeElement) || card.querySelector("input:checked, details[open][data-gov-rejecting]");

function put(old, html, { focus = false } = {}) {
  const fresh = parsed(`<ul>${html}</ul>`).querySelector("[data-gov-card]");
  if (!fresh) return null;
  old.replaceWith(fresh);
  ready(fresh);
  if (focus) fresh.focus();
  return fresh;
}

async function look(card) {
  const answer = await fetch(card.dataset.url, { credentials: "same-origin", headers: CARD }).catch(() => null);
  if (answer?.ok && card.isConnected) put(card, await answer.text(), { focus: card.contains(document.activeElement) });
  else if (answer?.status === 404) card.remove();
  else if (card.isConnected && card.dataset.underWay !== undefined) setTimeout(() => look(card), POLL_MS);
}

async function decide(card, form, button) {
  if (card.dataset.deciding !== undefined) return;
  card.dataset.deciding = "";
  const body = new URLSearchParams(new FormData(form));
  body.set("act", button.value);
  for (const control of form.querySelectorAll("button, textarea, input")) control.disabled = true;
  const answer = await fetch(form.action || location.href, { method: "POST", body, credentials: "same-origin", headers: CARD }).catch(() => null);
  const text = answer && answer.headers.get("content-type")?.startsWith("text/html") ? await answer.text() : "";
  const next = cards()[cards().indexOf(card) + 1];
  delete card.dataset.deciding;
  decisions += 1;
  const fresh = text.includes("data-gov-card") ? put(card, text) : null;
  if (!fresh) {
    for (const control of form.querySelectorAll("button, textarea, input")) control.disabled = false;
    said.textContent = place.dataset.failed;
    return say(card, place.dataset.failed);
  }
  said.textContent = fresh.querySelector(".gov-told, .gov-error")?.textContent.trim() ?? "";
  (answer.ok && next ? next : fresh).focus();
  if (answer.ok) soon();
}

function say(card, text) {
  const line = card.querySelector(".gov-error") ?? document.createElement("p");
  line.className = "gov-error";
  line.setAttribute("role", "alert");
  line.textContent = text;
  card.querySelector("header").after(line);
}

function ready(card) {
  const form = card.querySelector("[data-gov-decide]");
  form?.addEventListener("submit", (event) => {
    event.preventDefault();
    decide(card, form, event.submitter ?? form.querySelector("[data-gov-yes]"));
  });
  for (const chip of card.querySelectorAll("[data-gov-reason]")) {
    chip.hidden = false;
    chip.addEventListener("click", () => {
      card.querySelector("textarea").value = chip.dataset.govReason;
      card.querySelector("[data-gov-no]").focus();
    });
  }
  if (card.dataset.underWay !== undefined) setTimeout(() => look(card), LOOK_MS);
}

/* ---- news ---- */

let waiting = null;
let looking = false; // one look at a time: of two the older might come last
let decisions = 0; // made here; a page that was asked for before one does not know it

function soon() {
  waiting ??= setTimeout(refresh, 300);
}

async function refresh() {
  waiting = null;
  if (looking) return soon();
  looking = true;
  const before = decisions;
  const answer = await fetch(location.href, { credentials: "same-origin" }).catch(() => null);
  const text = answer?.ok ? await answer.text().catch(() => "") : "";
  looking = false;
  if (!text) return;
  if (before !== decisions) return soon();
  const page = parsed(text);
  for (const selector of ["[data-gov-inbox-top]", ".gov-screens"]) {
    const [old, fresh] = [document.querySelector(selector), page.querySelector(selector)];
    if (old && fresh && !old.contains(document.activeElement)) old.replaceWith(fresh);
  }
  merge([...page.querySelectorAll("[data-gov-card]")]);
}

function merge(fresh) {
  const there = new Map(cards().map((card) => [card.dataset.govCard, card]));
  for (const card of fresh) {
    const old = there.get(card.dataset.govCard);
    there.delete(card.dataset.govCard);
    if (!old) {
      list.append(card);
      ready(card);
    } else if (!isBusy(old)) {
      old.replaceWith(card);
      ready(card);
    }
  }
  for (const gone of there.values()) if (gone.querySelector("[data-gov-decide], [data-gov-hindrance]") && !isBusy(gone)) look(gone);
}

function follow() {
  let polling = null;
  const poll = () => (polling ??= setInterval(refresh, POLL_MS));
  setInterval(refresh, NET_MS);
  if (!place.dataset.stream || !window.EventSource) return poll();
  const stream = new EventSource(place.dataset.stream);
  stream.addEventListener("open", () => {
    clearInterval(polling);
    polling = null;
    soon();
  });
  stream.addEventListener("news", soon);
  stream.addEventListener("error", poll);
  window.addEventListener("pagehide", () => stream.close());
}

/* ---- keys ---- */

function step(by) {
  const all = cards();
  const here = all.findIndex((card) => card.contains(document.activeElement));
  const next = all[Math.max(0, Math.min(all.length - 1, here < 0 ? 0 : here + by))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  a: (card) => card?.querySelector("[data-gov-yes]")?.click(),
  r: (card) => {
    const rejecting = card?.querySelector("[data-gov-rejecting]");
    if (!rejecting) return;
    rejecting.open = true;
    rejecting.querySelector("textarea").focus();
  },
  Enter: (card) => card && location.assign(card.dataset.url),
};

function key(event) {
  const target = event.target;
  const writes = target.closest?.("input, textarea, select, [contenteditable]");
  if (writes || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  const card = target.closest?.("[data-gov-card]");
  if (event.key === "Enter" && target !== card) return; // a button or a link of its own
  event.preventDefault();
  KEYS[event.key](card);
}

if (list) {
  cards().forEach(ready);
  document.addEventListener("keydown", key);
  if (place.dataset.stream !== undefined) follow();
}
