// The banner of a server that cannot be reached. It checks for the server, and disappears when it is back.

import { button, byId } from "./dom.js";

const INTERVAL = 5000; // milliseconds between two checks

const banner = byId("banner");
let timer = null;

/**
 * Show the banner if a request did not reach the server, else hide it. `retry` runs when the user clicks Retry, and
 * `onReturn` when a check reaches the server.
 */
export function updateBanner(reached, retry, onReturn) {
  if (reached) return hide();
  if (!banner.hidden) return undefined;
  banner.replaceChildren(
    "The server cannot be reached. This page stays as it is; nothing new can load until the server is back. ",
    button("Retry", retry, { class: "main" }),
  );
  banner.hidden = false;
  timer = setInterval(() => check(onReturn), INTERVAL);
  return undefined;
}

function hide() {
  clearInterval(timer);
  banner.hidden = true;
}

async function check(onReturn) {
  if (document.hidden) return;
  const response = await fetch("health", { cache: "no-store" }).catch(() => null);
  if (!response?.ok || banner.hidden) return;
  hide();
  onReturn();
}
