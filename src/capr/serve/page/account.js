// The account of the user, and the features of the server.

import { get, token } from "./api.js";
import { byId, el } from "./dom.js";
import { hitLimit } from "./state.js";

const button = byId("account");
let account = Promise.resolve(null);

/** Load the account from the server. */
export function load() {
  account = get("api/me").catch(() => null); // the results show the problem
  account.then((me) => {
    if (me?.limits) hitLimit(me.limits.k);
    button.hidden = !me || me.open;
    if (me) {
      button.replaceChildren(el("span", { class: "name" }, me.name), ": sign out"); // CSS may cut the name only
      button.title = `${me.name}: sign out`;
      button.setAttribute("aria-label", button.title);
    }
    byId("masked").hidden = !me?.features?.deidentified;
  });
}

/** Return whether the server has a feature such as `ask`; true if the server does not answer. */
export const has = async (feature) => (await account)?.features?.[feature] !== false;

/** Add the listeners. */
export function start() {
  button.addEventListener("click", () => {
    token.drop();
    location.hash = "";
    location.reload();
  });
  load();
}
