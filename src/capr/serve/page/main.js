// The router of the page: it shows the view that the address names, after every change of the address.

import * as account from "./account.js";
import { connect } from "./api.js";
import { updateBanner } from "./banner.js";
import { byId, el } from "./dom.js";
import * as saved from "./saved.js";
import * as search from "./search.js";
import { current, declare } from "./state.js";
import * as tabs from "./tabs.js";
import * as tokens from "./token.js";
import * as tooltip from "./tooltip.js";
import * as views from "./views.js";

const HOME = Object.values(views).find((view) => !view.matches);
const VIEWS = [HOME, ...Object.values(views).filter((view) => view !== HOME)];
let shown = null; // the current view and its state

function route() {
  const state = current();
  search.fill(state);
  const view = VIEWS.find((candidate) => candidate.matches?.(state)) ?? HOME;
  const previous = shown && shown.view !== view ? shown : null;
  if (previous) {
    previous.view.hide();
    previous.view.element.hidden = true;
  }
  shown = { view, state };
  view.element.hidden = false;
  tabs.mark(view, state, HOME);
  document.title = [view.title(state), "capr"].filter(Boolean).join(" · ");
  view.show(state, previous?.state ?? null);
}

/** Load the current view again. */
function retry() {
  for (const view of VIEWS) view.forget();
  route();
  account.load();
}

for (const view of VIEWS) {
  declare(view.parameters ?? {});
  if (view.style) document.head.append(el("link", { rel: "stylesheet", href: `page/${view.style}` }));
}
byId("main").append(...VIEWS.map((view) => view.element));
tabs.start(VIEWS);
connect({ askForToken: tokens.askForToken, reportReached: (reached) => updateBanner(reached, retry, route) });
search.start();
saved.start();
tooltip.start();
tokens.start();
byId("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the fragment of the address is the search
  byId("main").focus();
});
byId("home").addEventListener("click", () => {
  search.clear();
  byId("query").focus();
});
addEventListener("hashchange", route);
route();
account.start();
