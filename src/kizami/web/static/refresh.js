// Keeps a live page fresh: fetches it again, and puts in its main part where that has changed.
// Without this script every page works; it then shows the moment at which it was loaded.
"use strict";

const PERIOD_MS = 2000;
const note = document.getElementById("refresh-note");
let shown = document.getElementById("main").innerHTML;

function isBusy(main) {
  const focused = document.activeElement;
  const chosen = document.getSelection();
  const typing = main.contains(focused) && focused.matches("input, select, textarea");
  const selecting = chosen !== null && !chosen.isCollapsed && main.contains(chosen.anchorNode);
  return typing || selecting;
}

function openDetails(main) {
  return [...main.querySelectorAll("details")].map((element) => element.open);
}

function focusable(main) {
  return [...main.querySelectorAll("a[href], button, summary")];
}

function put(fresh) {
  const main = document.getElementById("main");
  if (fresh.innerHTML === shown || isBusy(main)) return;
  const open = openDetails(main);
  const focused = document.activeElement;
  const place = focusable(main).indexOf(focused);
  const scrolled = [...main.querySelectorAll(".scroll")].map((element) => element.scrollLeft);
  shown = fresh.innerHTML;
  main.replaceChildren(...fresh.childNodes);
  [...main.querySelectorAll("details")].forEach((element, index) => { element.open = Boolean(open[index]); });
  [...main.querySelectorAll(".scroll")].forEach((element, index) => { element.scrollLeft = scrolled[index] || 0; });
  if (place >= 0) {
    const again = (focused.id && document.getElementById(focused.id)) || focusable(main)[place];
    if (again) again.focus({ preventScroll: true });
  }
}

async function refresh() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
  if (answer.status >= 400 && answer.status < 500) { location.reload(); return; } // logged out, or what it showed is gone
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  put(page.getElementById("main"));
}

async function turn() {
  if (document.getElementById("main").dataset.live === undefined) return;
  if (!document.hidden) {
    try {
      await refresh();
      note.hidden = true;
    } catch {
      note.hidden = false;
    }
  }
  setTimeout(turn, PERIOD_MS);
}

setTimeout(turn, PERIOD_MS);
