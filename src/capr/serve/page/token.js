// The dialog for an access token. The browser stores it until the tab closes, and nowhere else.

import { token } from "./api.js";
import { byId } from "./dom.js";

const dialog = byId("token-dialog");
const input = byId("token");
let pending = null; // the promise that all waiting requests share, so that there is one dialog

/** Ask for a token; resolve to it, or to null. `problem` is the problem of the last token. */
export function askForToken(problem) {
  pending ??= new Promise((resolve) => {
    input.value = "";
    byId("token-error").textContent = problem;
    dialog.returnValue = "";
    dialog.addEventListener(
      "close",
      () => {
        pending = null;
        resolve(token.get() || null);
      },
      { once: true },
    );
    dialog.showModal();
    input.focus();
  });
  return pending;
}

/** Add the listeners. */
export function start() {
  byId("token-form").addEventListener("submit", () => {
    // Pasted tokens often have a space or a line break around them.
    const value = input.value.trim();
    if (/^[\x21-\x7e]+$/.test(value)) token.set(value);
    input.value = "";
  });
  byId("token-cancel").addEventListener("click", () => dialog.close());
}
