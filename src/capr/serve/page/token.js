// The dialog for an access token, which is kept until the tab is closed, and nowhere else.

import { token } from "./api.js";
import { byId } from "./dom.js";

const dialog = byId("token-dialog");
const input = byId("token");
let waiting = null; // the promise of those who wait for a token, so that there is one dialog for all

/** Asks for a token; gives it, or null. `wrong` says what was wrong with the last one. */
export function askForToken(wrong) {
  waiting ??= new Promise((resolve) => {
    input.value = "";
    byId("token-error").textContent = wrong;
    dialog.returnValue = "";
    dialog.addEventListener(
      "close",
      () => {
        waiting = null;
        resolve(token.get() || null);
      },
      { once: true },
    );
    dialog.showModal();
    input.focus();
  });
  return waiting;
}

/** Listens. */
export function start() {
  byId("token-form").addEventListener("submit", () => {
    // An address bar's worth of harm: a blank or a line break around a token that was pasted.
    const given = input.value.trim();
    if (/^[\x21-\x7e]+$/.test(given)) token.set(given);
    input.value = "";
  });
  byId("token-cancel").addEventListener("click", () => dialog.close());
}
