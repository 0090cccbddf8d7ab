// Tabs: a link to each view with a label, if there are at least two.

import { byId, el } from "./dom.js";
import { noView, toFragment } from "./state.js";

const bar = byId("tabs");
let links = new Map(); // by view

/** Create the tabs. */
export function start(views) {
  links = new Map(views.filter((view) => view.label).map((view) => [view, el("a", {}, view.label)]));
  bar.replaceChildren(...links.values());
  bar.hidden = links.size < 2;
}

/** Mark the tab of the current view. `home` is the view of an address that names none. */
export function mark(shown, state, home) {
  for (const [view, link] of links) {
    link.href = "#" + toFragment({ ...state, ...noView(), view: view === home ? "" : view.name });
    if (view === shown) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}
