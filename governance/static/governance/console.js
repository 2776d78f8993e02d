/* What a page of the console gains with a script: read-outs of charts, arrow keys along their columns, ids to copy. */

function readout(chart) {
  const line = chart.querySelector("[data-gov-readout]");
  const columns = [...chart.querySelectorAll(".gov-column")];
  const tell = (column) => { line.textContent = column.getAttribute("aria-label"); };
  const quiet = () => { line.textContent = "\u00a0"; };
  const wide = chart.querySelector(".gov-wide");
  wide.scrollLeft = wide.scrollWidth; // on a phone the newest days are seen first
  columns.forEach((column, number) => {
    column.querySelector("title")?.remove(); // the line says it, sooner
    column.setAttribute("tabindex", number === 0 ? "0" : "-1");
    column.addEventListener("pointerenter", () => tell(column));
    column.addEventListener("pointerleave", quiet);
    column.addEventListener("focus", () => tell(column));
    column.addEventListener("blur", quiet);
    column.addEventListener("keydown", (event) => move(event, columns, number));
  });
}

function move(event, columns, number) {
  const last = columns.length - 1;
  const to = { ArrowLeft: number - 1, ArrowRight: number + 1, Home: 0, End: last }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const next = columns[Math.max(0, Math.min(last, to))];
  columns.forEach((column) => column.setAttribute("tabindex", column === next ? "0" : "-1"));
  next.focus();
}

function copying(button) {
  if (!navigator.clipboard) return; // only on secure pages
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.dataset.govCopy);
    button.textContent = "✓";
  });
}

document.querySelectorAll("[data-gov-chart]").forEach(readout);
document.querySelectorAll("[data-gov-copy]").forEach(copying);
