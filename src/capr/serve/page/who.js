// Who is searching, and what the server can do for them.

import { get, token } from "./api.js";
import { byId, el } from "./dom.js";
import { mostHits } from "./state.js";

const button = byId("account");
let known = Promise.resolve(null);

/** Asks the server anew. */
export function look() {
  known = get("api/me").catch(() => null); // whatever is wrong, the results say so
  known.then((me) => {
    if (me?.limits) mostHits(me.limits.k);
    button.hidden = !me || me.open;
    if (me) {
      button.replaceChildren(el("span", { class: "name" }, me.name), ": sign out"); // a long name is cut, what it does not
      button.title = `${me.name}: sign out`;
      button.setAttribute("aria-label", button.title);
    }
    byId("masked").hidden = !me?.features?.deidentified;
  });
}

/** Whether the server has something, such as `ask`; it is taken for granted until the server says no. */
export const has = async (feature) => (await known)?.features?.[feature] !== false;

/** Listens. */
export function start() {
  button.addEventListener("click", () => {
    token.drop();
    location.hash = "";
    location.reload();
  });
  look();
}
