// The page: the address says what is shown, and every change of it comes through here.

import { connect } from "./api.js";
import { heard } from "./banner.js";
import { byId } from "./dom.js";
import * as report from "./document.js";
import * as filters from "./filters.js";
import * as results from "./results.js";
import * as saved from "./saved.js";
import * as search from "./search.js";
import { current } from "./state.js";
import * as tip from "./tip.js";
import * as tokens from "./token.js";
import * as who from "./who.js";

let scrolled = 0; // where the results were left
let shown = null; // the document that is shown

function route() {
  const state = current();
  search.fill(state);
  const reading = Boolean(state.document);
  if (reading && !shown) scrolled = scrollY;
  const returned = shown && !reading ? shown : null;
  shown = reading ? state.document : null;
  byId("results").hidden = reading;
  byId("document").hidden = !reading;
  byId("page").classList.toggle("reading", reading);
  document.title = reading ? "Report · capr" : location.hash.length > 1 ? "Results · capr" : "capr";
  if (reading) {
    byId("filters").hidden = true;
    report.show(state);
    return;
  }
  report.close();
  filters.show(state);
  results.show(state);
  if (returned) comeBack(returned);
}

/** Back where the results were left, at the hit that had been opened. */
function comeBack(id) {
  scrollTo(0, scrolled);
  document.querySelector(`.hit[data-document="${CSS.escape(id)}"] h3 a`)?.focus({ preventScroll: true });
}

/** Loads anew what is shown. */
function retry() {
  results.forget();
  filters.forget();
  if (shown) report.close();
  route();
  who.look();
}

connect({ askForToken: tokens.askForToken, heard: (reached) => heard(reached, retry, route) });
search.start();
saved.start();
tip.start();
tokens.start();
byId("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the fragment is the search
  byId("main").focus();
});
byId("home").addEventListener("click", () => {
  search.clear();
  byId("query").focus();
});
addEventListener("hashchange", route);
route();
who.start();
