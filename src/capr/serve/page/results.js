// What a search found, or why it found nothing.

import { Latest, get, post } from "./api.js";
import { download } from "./citation.js";
import { button, byId, counted, el } from "./dom.js";
import { examples } from "./examples.js";
import { chips, turned, without } from "./filters.js";
import { address, card, facts } from "./hit.js";
import { sign } from "./marks.js";
import { failure, say, skeleton, toast } from "./notices.js";
import { PAGE, current, filters, go, hasFilters, hasQuery, mostHits, parse, query, search, written } from "./state.js";

const view = byId("results");
const latest = new Latest();
let shown = null; // the search whose results are there

const signature = (state) => written({ ...state, document: "", at: "", ask: "" });

/** Shows the results of what the address asks for, unless they are there. */
export async function show(state, { again = false } = {}) {
  if (signature(state) === shown && !again) return;
  const before = view.querySelectorAll(".hits > *").length;
  const grows =
    before > 0 && shown !== null && signature({ ...parse(shown), k: "" }) === signature({ ...state, k: "" });
  shown = signature(state);
  if (!hasQuery(state)) return void (hasFilters(state) ? await browse(state) : teach());
  await load(
    async (signal) => {
      const given = post("api/feedback/given", query(state), { signal }).catch(() => ({ given: [] })); // a help, no more
      const found = await post("api/search", search(state), { signal });
      return withJudgements(found, (await given).given);
    },
    (found) => {
      render(found, state);
      if (grows) view.querySelectorAll(".hits > *")[before]?.querySelector("h3 a").focus({ preventScroll: true });
    },
    grows,
  );
}

/** The hits with what this person has said of them before. */
function withJudgements(found, given) {
  const place = ({ document, begin, end }) => JSON.stringify([document, begin, end]);
  const known = new Map(given.map((one) => [place(one), one.answers]));
  for (const hit of found.hits) for (const one of [hit, ...(hit.others ?? [])]) one.judged = known.get(place(one));
  return found;
}

function teach() {
  latest.stop();
  view.removeAttribute("aria-busy");
  view.replaceChildren(examples());
}

export const forget = () => (shown = null);

/** Shows what a request gives; until then grey lines, or what is there if there will only be more of it. */
async function load(request, render, grows = false) {
  view.setAttribute("aria-busy", "true");
  if (!grows) view.replaceChildren(skeleton());
  try {
    const found = await latest.run(request);
    if (!found) return;
    render(found);
  } catch (problem) {
    shown = null;
    view.replaceChildren(failure(problem, () => show(current(), { again: true })));
    say(problem.title ?? "Error");
  }
  view.removeAttribute("aria-busy");
}

function render(found, state) {
  const { hits } = found;
  if (!hits.length) return nothing(found, state);
  const all = hits.flatMap((hit) => [hit, ...(hit.others ?? [])]);
  const documents = new Set(all.map((hit) => hit.document)).size;
  const groups = hits.filter((hit) => state.group === "document" || hit.metadata.patient).length;
  const count = state.group
    ? `${counted(groups, state.group)}, ${counted(all.length, "passage")}`
    : `${counted(hits.length, "passage")} in ${counted(documents, "document")}`;
  view.replaceChildren(
    el("div", { class: "results-head" }, el("h2", { tabindex: "-1" }, count), toolbar(state)),
    el("p", { class: "quiet how" }, how(found)),
    ...[chips(state), understood(found), legend()].filter(Boolean),
    el("div", { class: "hits" }, ...hits.map((hit, at) => entry(hit, at + 1, state))),
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
  const name = state.group === "document" ? "Document" : hit.metadata.patient ? "Patient" : "Of no patient:";
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
    button("CSV", () => exported(state, "csv"), { "aria-label": "Export as CSV" }),
    button("JSON", () => exported(state, "json"), { "aria-label": "Export as JSON" }),
    button("Save", () => byId("saved-open").click(), { "aria-label": "Save search" }),
  );
}

async function exported(state, format) {
  try {
    const file = await post("api/export", { ...search(state), format }, { file: true });
    download(file);
    toast(`Exported: ${file.name}`);
  } catch (problem) {
    toast(`Not exported: ${problem.title}. ${problem.fix ?? ""}`);
  }
}

/** How the query was understood: other names that were looked for, and notices. */
function understood({ expanded = {}, notices = [] }) {
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
  const said = notices.map((notice) => el("li", { class: "notice" }, notice));
  return lines.length || said.length ? el("ul", { class: "understood plain" }, ...lines, ...said) : null;
}

function legend() {
  const sample = (kind) => el("span", { class: `mention said ${kind}` }, kind);
  const context = (flag, words) =>
    el("span", { class: `mention disease ${flag}` }, sign([flag]), el("span", { class: "said" }, words));
  return el(
    "details",
    { class: "legend" },
    el("summary", {}, "What the marks mean"),
    el(
      "p",
      {},
      el("span", { class: "evidence best" }, "evidence"),
      " sentences that speak of the query, ",
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
      ". Point at a mark, or go to it with Tab and the arrow keys, to see the words that say so.",
    ),
  );
}

function more(count, state) {
  const k = search(state).k;
  if (count < k) return null;
  if (k >= mostHits())
    return el(
      "p",
      { class: "quiet" },
      `These are the best ${k}, as many as this server gives; an export has the same. Narrow the search by filters to see others.`,
    );
  return button("Show more", () => go({ k: String(k + PAGE) }, { replace: true }), { class: "more" });
}

function nothing({ notices = [] }, state) {
  const drop = hasFilters(state) && button("Search without filters", () => go(without()), { class: "main" });
  view.replaceChildren(
    ...[chips(state)].filter(Boolean),
    el(
      "div",
      { class: "state none" },
      el("h2", { tabindex: "-1" }, "No passage found"),
      ...[turned(state), ...notices].filter(Boolean).map((notice) => el("p", { class: "notice" }, notice)),
      el(
        "p",
        {},
        hasFilters(state)
          ? "Nothing that passes the filters speaks of this. "
          : "Nothing in this library speaks of this. ",
        "Try fewer or other words, leave out “quotation marks”, + and -, or name an entity and an aspect.",
      ),
      drop,
    ),
  );
  say("No passage found.");
}

/** Filters without a query: the documents that pass, to open one. */
async function browse(state) {
  const wanted = new URLSearchParams({ limit: "50" });
  for (const [name, value] of Object.entries(filters(state)))
    for (const one of [value].flat()) wanted.append(name, one);
  await load(
    (signal) => get(`api/documents?${wanted}`, { signal }),
    ({ documents, total }) => {
      const count = counted(total, "document");
      view.replaceChildren(
        el("div", { class: "results-head" }, el("h2", { tabindex: "-1" }, count)),
        ...[chips(state), turned(state) && el("p", { class: "notice" }, turned(state))].filter(Boolean),
        el(
          "p",
          { class: "quiet" },
          total > documents.length
            ? `The first ${documents.length} that pass the filters. `
            : "All that pass the filters. ",
          "Open one, or search in them above.",
        ),
        el(
          "ul",
          { class: "plain documents" },
          ...documents.map((one) =>
            el(
              "li",
              { class: "card" },
              el(
                "h3",
                {},
                el("a", { href: address({ document: one.id, begin: 0, end: 0 }, state) }, one.title || one.id),
              ),
              facts(one.metadata, null, one.id),
            ),
          ),
        ),
      );
      say(`${count}.`);
    },
  );
}
