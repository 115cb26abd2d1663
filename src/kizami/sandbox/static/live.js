// Keeps the page current: asks for it again every two seconds and swaps what changed.
const PAUSE_MS = 2000;
let tag = null;

async function refresh() {
  if (document.hidden) return;
  const answer = await fetch(location.href, { cache: "no-store", headers: tag ? { "if-none-match": tag } : {} });
  if (answer.status !== 200) return;
  tag = answer.headers.get("etag");
  swap(new DOMParser().parseFromString(await answer.text(), "text/html"));
}

function swap(fresh) {
  const main = document.querySelector("main");
  const wasAtEnd = main.scrollTop + main.clientHeight >= main.scrollHeight - 40;
  const open = [...main.querySelectorAll("details[open]")].map((each) => each.id);
  for (const part of document.querySelectorAll("[data-live]")) {
    const same = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
    if (same && same.innerHTML !== part.innerHTML) part.replaceChildren(...same.childNodes);
  }
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (wasAtEnd) toEnd();
}

function toEnd() {
  const main = document.querySelector("main");
  if (main.querySelector("[data-follow]")) main.scrollTop = main.scrollHeight;
}

if (!location.hash) toEnd();
setInterval(() => refresh().catch(() => {}), PAUSE_MS); // a sandbox that went away may come back
