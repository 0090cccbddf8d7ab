// The server is gone: a banner that says so, looks for it, and goes when it is back.

import { button, byId } from "./dom.js";

const EVERY = 5000; // milliseconds between two looks

const banner = byId("banner");
let looking = null;

/** Told of every request whether it reached the server; `retry` is called when somebody wants to go on. */
export function heard(reached, retry) {
  if (reached) return hide();
  if (!banner.hidden) return undefined;
  banner.replaceChildren(
    "The server cannot be reached. What you see stays; nothing new can be loaded until it is back. ",
    button("Retry", retry, { class: "main" }),
  );
  banner.hidden = false;
  looking = setInterval(look, EVERY);
  return undefined;
}

function hide() {
  clearInterval(looking);
  banner.hidden = true;
}

async function look() {
  if (document.hidden) return;
  try {
    if ((await fetch("health", { cache: "no-store" })).ok) hide();
  } catch {
    // still gone
  }
}
