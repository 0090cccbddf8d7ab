// Filters with counts, and chips that remove them.

import { Latest, get, post } from "./api.js";
import { button, byId, counted, debounced, el } from "./dom.js";
import { histogram } from "./histogram.js";
import { EMPTY, LISTS, current, filters, go, hasFilters } from "./state.js";

const SHOWN = 7; // values of a filter before "show all"
const NAMES = { patient: "Patient", type: "Type", section: "Section", source: "Source" };
const FACETS = { patient: "patient", type: "type", section: "aspect", source: "source" }; // their names in the API
export const HIDE = { negated: "Hide negated", family: "Hide family history" };

const panel = byId("filters");
const latest = new Latest();
const unfolded = new Set(); // filters that show all of their values
let shownSignature = ""; // the filters that the panel shows
let isPanelOpen = false; // on a narrow screen

/** Count the documents that match the filters, and show the panel. */
export async function show(state) {
  const allowed = dateProblem(state) ? { ...state, from: "", to: "" } : state; // the server rejects such a period
  const body = { filters: filters(allowed), without: state.without };
  const signature = JSON.stringify([body, dateProblem(state)]);
  panel.hidden = false;
  if (signature === shownSignature) return;
  try {
    const facets = await latest.run((signal) => post("api/facets", body, { signal }));
    if (!facets) return;
    shownSignature = signature;
    render(facets, state);
  } catch (problem) {
    shownSignature = "";
    if (!panel.childElementCount) panel.hidden = true;
    if (problem.status) console.warn(problem.message); // the results show the same problem to the user
  }
}

export const hide = () => (panel.hidden = true);

export const forget = () => (shownSignature = "");

function render(facets, state) {
  const focused = panel.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  panel.replaceChildren(
    fold(state),
    el(
      "div",
      { class: "filter-body", id: "filter-body" },
      el(
        "p",
        { class: "quiet" },
        counted(dateProblem(state) ? 0 : facets.documents, "document"),
        hasFilters(state) ? " match the filters" : " in total",
      ),
      dates(facets, state),
      ...Object.keys(NAMES).map((name) => values(name, facets, state)),
      contextFilters(state),
    ),
  );
  panel.classList.toggle("open", isPanelOpen);
  if (focused) panel.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

/** Return the button that opens the panel on a narrow screen. */
function fold(state) {
  const count = activeFilters(state).length;
  const toggle = button(
    count ? `Filters (${count})` : "Filters",
    () => {
      isPanelOpen = panel.classList.toggle("open");
      toggle.setAttribute("aria-expanded", String(isPanelOpen));
    },
    { class: "fold", "aria-expanded": String(isPanelOpen), "aria-controls": "filter-body", "data-key": "fold" },
  );
  return toggle;
}

function values(name, facets, state) {
  const counts = facets[FACETS[name]] ?? [];
  const known = new Set(counts.map(({ value }) => value.toLowerCase()));
  const missing = state[name].filter((value) => !known.has(value.toLowerCase()));
  const all = [...missing.map((value) => ({ value, count: 0 })), ...counts];
  if (all.length < 2 && !state[name].length) return null;
  const more = facets.more?.[FACETS[name]] ?? 0;
  const list = el("ul", { class: "plain" });
  const fill = (counts) => list.replaceChildren(...counts.map((count) => value(name, count, state)));
  const firstValues = () => all.filter(({ value }, index) => index < SHOWN || includes(state[name], value));
  fill(unfolded.has(name) ? all : firstValues());
  const showAll = more ? `Show ${all.length} of ${all.length + more}` : `Show all ${all.length}`;
  const toggle =
    all.length > SHOWN &&
    button(
      unfolded.has(name) ? "Show fewer" : showAll,
      () => {
        if (!unfolded.delete(name)) unfolded.add(name);
        fill(unfolded.has(name) ? all : firstValues());
        toggle.textContent = unfolded.has(name) ? "Show fewer" : showAll;
      },
      { class: "link", "data-key": `all:${name}` },
    );
  return el(
    "fieldset",
    { "data-filter": name },
    el("legend", {}, NAMES[name]),
    name === "patient" && all.length > SHOWN && find(all, more, fill, firstValues),
    list,
    toggle,
    more > 0 && el("p", { class: "quiet" }, `${counted(more, "further value")} not listed`),
  );
}

/** Return a field that searches all patients. */
function find(all, more, fill, firstValues) {
  const latestPatients = new Latest();
  const search = async (prefix) => {
    if (!prefix) return fill(firstValues());
    if (!more) return fill(all.filter(({ value }) => value.toLowerCase().includes(prefix.toLowerCase())));
    const page = await latestPatients.run((signal) =>
      get(`api/patients?${new URLSearchParams({ prefix, limit: 20 })}`, { signal }),
    );
    return page && fill(page.patients.map(({ patient, documents }) => ({ value: patient, count: documents })));
  };
  const searchSoon = debounced((prefix) => search(prefix).catch(() => fill(firstValues())), 150);
  return el("input", {
    type: "search",
    class: "find",
    placeholder: "Find a patient",
    "aria-label": "Find a patient",
    "data-key": "find:patient",
    oninput: (event) => searchSoon(event.target.value.trim()),
  });
}

function value(name, { value, count }, state) {
  const box = el("input", {
    type: "checkbox",
    checked: includes(state[name], value),
    "data-key": `${name}:${value}`,
    onchange: () => toggle(name, value, box.checked),
  });
  return el(
    "li",
    {},
    el(
      "label",
      {},
      box,
      el("span", { class: "grow" }, value),
      el("span", { class: "count" }, count.toLocaleString("en")),
    ),
  );
}

/** Return whether a list contains a value, ignoring case as the server does. */
const includes = (values, value) => values.some((other) => other.toLowerCase() === value.toLowerCase());

function toggle(name, value, isOn) {
  const others = current()[name].filter((other) => !includes([value], other));
  go({ [name]: isOn ? [...others, value] : others, k: "" });
}

function dates(facets, state) {
  const months = facets.dates ?? [];
  if (!months.length && !state.from && !state.to) return null;
  const choose = (from, to) => go({ from, to, k: "" });
  const day = (name, label) =>
    el(
      "label",
      {},
      label,
      el("input", {
        type: "date",
        value: state[name],
        "aria-invalid": dateProblem(state) ? "true" : null,
        "data-key": `date:${name}`,
        onchange: (event) => go({ [name]: event.target.value, k: "" }),
      }),
    );
  return el(
    "fieldset",
    { "data-filter": "date" },
    el("legend", {}, "Date"),
    histogram(months, state, choose),
    el("div", { class: "days" }, day("from", "From"), day("to", "To")),
    dateProblem(state) && el("p", { class: "wrong", role: "alert" }, dateProblem(state)),
    facets.undated > 0 && el("p", { class: "quiet" }, `${counted(facets.undated, "document")} without a date`),
  );
}

/** Return a message if the first day is after the last, else an empty string. */
export function dateProblem({ from, to }) {
  if (!from || !to || from <= to) return "";
  return `From (${from}) is after To (${to}), so no document matches. Swap them, or remove one.`;
}

function contextFilters(state) {
  return el(
    "fieldset",
    { "data-filter": "without" },
    el("legend", {}, "Context"),
    el(
      "ul",
      { class: "plain" },
      ...Object.entries(HIDE).map(([flag, words]) => {
        const box = el("input", {
          type: "checkbox",
          checked: state.without.includes(flag),
          "data-key": `without:${flag}`,
          onchange: () => toggle("without", flag, box.checked),
        });
        return el("li", {}, el("label", {}, box, el("span", { class: "grow" }, words)));
      }),
    ),
    el("p", { class: "quiet" }, "A passage stays if it mentions the entity at least once in another context."),
  );
}

/** Return the active filters: [{words, changes}], with the changes of the state that remove them. */
function activeFilters(state) {
  const lists = LISTS.filter((name) => name !== "without");
  const active = lists.flatMap((name) =>
    state[name].map((value) => ({
      words: `${NAMES[name]}: ${value}`,
      changes: { [name]: state[name].filter((other) => other !== value), k: "" },
    })),
  );
  if (state.from || state.to) {
    const words = `Date: ${state.from || "…"} to ${state.to || "…"}`;
    active.push({ words, changes: { from: "", to: "", k: "" } });
  }
  for (const flag of state.without) {
    active.push({
      words: HIDE[flag] ?? `Hide ${flag}`,
      changes: { without: state.without.filter((other) => other !== flag), k: "" },
    });
  }
  return active;
}

/** Return a button for each active filter. */
export function chips(state) {
  const active = activeFilters(state);
  if (!active.length) return null;
  return el(
    "div",
    { class: "chips", role: "group", "aria-label": "Active filters" },
    ...active.map(({ words, changes }) =>
      el(
        "button",
        { type: "button", class: "chip", "aria-label": `Remove the filter ${words}`, onclick: () => go(changes) },
        words,
        el("span", { "aria-hidden": "true" }, " ×"),
      ),
    ),
    active.length > 1 && button("Remove all", () => go(noFilters()), { class: "link" }),
  );
}

/** Return the changes that remove all filters. */
export const noFilters = () => ({
  ...Object.fromEntries([...LISTS, "from", "to"].map((name) => [name, EMPTY[name]])),
  k: "",
});
