// The server is gone: a banner that says so, looks for it, and goes when it is back.

import { button, byId } from "./dom.js";

const EVERY = 5000; // milliseconds between two looks

const banner = byId("banner");
let looking = null;

/**
 * Told of every request whether it reached the server. `retry` is called when somebody wants to go on, `back` when the
 * server is found to be there again.
 */
export function heard(reached, retry, back) {
  if (reached) return hide();
  if (!banner.hidden) return undefined;
  banner.replaceChildren(
    "The server cannot be reached. What you see stays; nothing new can be loaded until it is back. ",
    button("Retry", retry, { class: "main" }),
  );
  banner.hidden = false;
  looking = setInterval(() => look(back), EVERY);
  return undefined;
}

function hide() {
  clearInterval(looking);
  banner.hidden = true;
}

async function look(back) {
  if (document.hidden) return;
  const answer = await fetch("health", { cache: "no-store" }).catch(() => null);
  if (!answer?.ok || banner.hidden) return;
  hide();
  back();
}
