// The hits of a search, or the reason why there are none.

import { Latest, get, post } from "./api.js";
import { download } from "./citation.js";
import { button, byId, counted, el } from "./dom.js";
import { examples } from "./examples.js";
import {
  chips,
  dateProblem,
  forget as forgetFilters,
  hide as hideFilters,
  noFilters,
  show as showFilters,
} from "./filters.js";
import { address, card, facts } from "./hit.js";
import { sign } from "./marks.js";
import { failure, say, skeleton, toast } from "./notices.js";
import {
  PAGE,
  current,
  filters,
  go,
  hasFilters,
  hasQuery,
  hitLimit,
  noView,
  parse,
  query,
  search,
  toFragment,
} from "./state.js";

export const name = "results";
export const label = "Search";
export const title = () => (location.hash.length > 1 ? "Results" : "");

const view = el("div", { id: name, hidden: true });
export { view as element };
const latest = new Latest();
let shownSignature = null; // the search whose results the view has
let scrollPosition = 0; // of the results when the user left them

const signature = (state) => toFragment({ ...state, ...noView() });

/** Show the filters and the results of the search in the address, unchanged if the user returns to them. */
export function show(state, before) {
  showFilters(state);
  find(state);
  if (before) restorePosition(before.document);
}

/** Scroll to where the user left the results, and focus the hit that was open. */
function restorePosition(id) {
  scrollTo(0, scrollPosition);
  if (id) document.querySelector(`.hit[data-document="${CSS.escape(id)}"] h3 a`)?.focus({ preventScroll: true });
}

export function hide() {
  scrollPosition = scrollY;
  hideFilters();
}

export function forget() {
  shownSignature = null;
  forgetFilters();
}

/** Show the results of a search, unless the view has them already. */
async function find(state, { again = false } = {}) {
  if (signature(state) === shownSignature && !again) return;
  const before = view.querySelectorAll(".hits > *").length;
  const isMore =
    before > 0 &&
    shownSignature !== null &&
    signature({ ...parse(shownSignature), k: "" }) === signature({ ...state, k: "" });
  shownSignature = signature(state);
  if (dateProblem(state)) return showInvalidPeriod(state);
  if (!hasQuery(state)) return void (hasFilters(state) ? await browse(state) : showExamples());
  await load(
    async (signal) => {
      const own = post("api/feedback/own", query(state), { signal }).catch(() => ({ judgements: [] })); // not essential
      const results = await post("api/search", search(state), { signal });
      return withJudgements(results, (await own).judgements);
    },
    (results) => {
      render(results, state);
      if (isMore) view.querySelectorAll(".hits > *")[before]?.querySelector("h3 a").focus({ preventScroll: true });
    },
    isMore,
  );
}

/** Return the results with the earlier judgements of the user. */
function withJudgements(results, judgements) {
  const key = ({ document, begin, end }) => JSON.stringify([document, begin, end]);
  const answers = new Map(judgements.map((judgement) => [key(judgement), judgement.answers]));
  for (const hit of results.hits.flatMap((hit) => [hit, ...(hit.others ?? [])])) hit.judged = answers.get(key(hit));
  return results;
}

/** Say that a period ends before it begins, without asking the server, which rejects it. */
function showInvalidPeriod(state) {
  latest.stop();
  view.removeAttribute("aria-busy");
  showNothing({}, state);
}

function showExamples() {
  latest.stop();
  view.removeAttribute("aria-busy");
  view.replaceChildren(examples());
}

/** Run a request and show its results. Until then, show grey lines, or keep the current hits if more will follow. */
async function load(request, render, isMore = false) {
  view.setAttribute("aria-busy", "true");
  if (!isMore) view.replaceChildren(skeleton());
  try {
    const results = await latest.run(request);
    if (!results) return;
    render(results);
  } catch (problem) {
    shownSignature = null;
    view.replaceChildren(failure(problem, () => find(current(), { again: true })));
    say(problem.title ?? "Error");
  }
  view.removeAttribute("aria-busy");
}

function render(results, state) {
  const { hits } = results;
  if (!hits.length) return showNothing(results, state);
  const all = hits.flatMap((hit) => [hit, ...(hit.others ?? [])]);
  const documents = new Set(all.map((hit) => hit.document)).size;
  const groups = hits.filter((hit) => state.group === "document" || hit.metadata.patient).length;
  const count = state.group
    ? `${counted(groups, state.group)}, ${counted(all.length, "passage")}`
    : `${counted(hits.length, "passage")} in ${counted(documents, "document")}`;
  view.replaceChildren(
    el("div", { class: "results-head" }, el("h2", { tabindex: "-1" }, count), toolbar(state)),
    el("p", { class: "quiet how" }, how(results)),
    ...[chips(state), interpretation(results), legend()].filter(Boolean),
    el("div", { class: "hits" }, ...hits.map((hit, index) => entry(hit, index + 1, state))),
    ...[more(hits.length, state)].filter(Boolean),
  );
  say(`${count} found.`);
  return undefined;
}

const MODES = { hybrid: "by words and meaning", lexical: "by words", dense: "by meaning", cdv: "by sentences" };

function how({ mode, took }) {
  const time = typeof took === "number" ? `, in ${took < 0.095 ? took.toFixed(2) : took.toFixed(1)} s` : "";
  return `Best first, ${MODES[mode] ?? mode}${time}`;
}

function entry(hit, rank, state) {
  if (!state.group) return card(hit, rank, state);
  const name = state.group === "document" ? "Document" : hit.metadata.patient ? "Patient" : "No patient:";
  return el(
    "section",
    { class: "group", "aria-label": `${name} ${hit.group}` },
    el("p", { class: "group-name" }, `${name} `, el("strong", {}, hit.group)),
    card(hit, rank, state),
  );
}

function toolbar(state) {
  const choice = el(
    "select",
    { id: "group", onchange: () => go({ group: choice.value, k: "" }) },
    ...[
      ["", "passage"],
      ["document", "document"],
      ["patient", "patient"],
    ].map(([value, words]) => el("option", { value, selected: state.group === value }, words)),
  );
  return el(
    "div",
    { class: "toolbar" },
    el("label", { class: "group-by" }, "List by ", choice),
    button("CSV", () => exportHits(state, "csv"), { "aria-label": "Export as CSV" }),
    button("JSON", () => exportHits(state, "json"), { "aria-label": "Export as JSON" }),
    button("Save", () => byId("saved-open").click(), { "aria-label": "Save search" }),
  );
}

async function exportHits(state, format) {
  try {
    const file = await post("api/export", { ...search(state), format }, { file: true });
    download(file);
    toast(`Exported: ${file.name}`);
  } catch (problem) {
    toast(`Not exported: ${problem.title}. ${problem.fix ?? ""}`);
  }
}

/** Return how the server understood the query: the other names that it searched for, and notices. */
function interpretation({ expanded = {}, notices = [] }) {
  const lines = Object.entries(expanded)
    .filter(([, others]) => others.length)
    .map(([name, others]) =>
      el(
        "li",
        {},
        el("strong", {}, name),
        " is also ",
        others.slice(0, 5).join(", "),
        others.length > 5
          ? el("span", { title: others.slice(5).join(", ") }, ` and ${others.length - 5} more names`)
          : "",
      ),
    );
  const noticeItems = notices.map((notice) => el("li", { class: "notice" }, notice));
  return lines.length || noticeItems.length ? el("ul", { class: "understood plain" }, ...lines, ...noticeItems) : null;
}

function legend() {
  const sample = (kind) => el("span", { class: `mention mention-text ${kind}` }, kind);
  const context = (flag, words) =>
    el("span", { class: `mention disease ${flag}` }, sign([flag]), el("span", { class: "mention-text" }, words));
  return el(
    "details",
    { class: "legend" },
    el("summary", {}, "What the marks mean"),
    el(
      "p",
      {},
      el("span", { class: "evidence best" }, "evidence"),
      " sentences about the query, ",
      el("mark", { class: "word" }, "word"),
      " of the query, ",
      sample("disease"),
      ", ",
      sample("symptom"),
      ", ",
      sample("drug"),
      "; ",
      context("negated", "negated"),
      ", ",
      context("possible", "possible"),
      ", ",
      context("hypothetical", "hypothetical"),
      ", ",
      context("historical", "historical"),
      ", ",
      context("family", "of a relative"),
      ". Point at a mark, or go to it with Tab and the arrow keys, to see the words that give the context.",
    ),
  );
}

function more(count, state) {
  const k = search(state).k;
  if (count < k) return null;
  if (k >= hitLimit())
    return el(
      "p",
      { class: "quiet" },
      `These are the best ${k} hits, this server's maximum. An export contains the same hits. Add filters to see others.`,
    );
  return button("Show more", () => go({ k: String(k + PAGE) }, { replace: true }), { class: "more" });
}

function showNothing({ notices = [] }, state) {
  const drop = hasFilters(state) && button("Search without filters", () => go(noFilters()), { class: "main" });
  view.replaceChildren(
    ...[chips(state)].filter(Boolean),
    el(
      "div",
      { class: "state none" },
      el("h2", { tabindex: "-1" }, "No passage found"),
      ...[dateProblem(state), ...notices].filter(Boolean).map((notice) => el("p", { class: "notice" }, notice)),
      el(
        "p",
        {},
        hasFilters(state)
          ? "No passage that matches the filters is about this. "
          : "No passage in this library is about this. ",
        "Try fewer or other words, leave out “quotation marks”, + and -, or name an entity and an aspect.",
      ),
      drop,
    ),
  );
  say("No passage found.");
}

/** Show the documents that match the filters, for a state without a query. */
async function browse(state) {
  const parameters = new URLSearchParams({ limit: "50" });
  for (const [name, value] of Object.entries(filters(state)))
    for (const item of [value].flat()) parameters.append(name, item);
  await load(
    (signal) => get(`api/documents?${parameters}`, { signal }),
    ({ documents, total }) => {
      const count = counted(total, "document");
      view.replaceChildren(
        el("div", { class: "results-head" }, el("h2", { tabindex: "-1" }, count)),
        ...[chips(state)].filter(Boolean),
        el(
          "p",
          { class: "quiet" },
          total > documents.length
            ? `The first ${documents.length} that match the filters. `
            : "All that match the filters. ",
          "Open one, or search them above.",
        ),
        el(
          "ul",
          { class: "plain documents" },
          ...documents.map((row) =>
            el(
              "li",
              { class: "card" },
              el(
                "h3",
                {},
                el("a", { href: address({ document: row.id, begin: 0, end: 0 }, state) }, row.title || row.id),
              ),
              facts(row.metadata, null, row.id),
            ),
          ),
        ),
      );
      say(`${count}.`);
    },
  );
}
