// Filters with counts, and chips that take them away.

import { Latest, get, post } from "./api.js";
import { button, byId, counted, debounced, el } from "./dom.js";
import { histogram } from "./histogram.js";
import { EMPTY, LISTS, current, filters, go, hasFilters } from "./state.js";

const SHOWN = 7; // values of a filter before "show all"
const NAMES = { patient: "Patient", type: "Type", section: "Section", source: "Source" };
const FACETS = { patient: "patient", type: "type", section: "aspect", source: "source" }; // as the API calls them
export const HIDE = { negated: "Hide negated", family: "Hide family history" };

const panel = byId("filters");
const latest = new Latest();
const unfolded = new Set(); // filters that show all of their values
let asked = ""; // the filters that the panel shows
let unfoldedPanel = false; // on a narrow screen

/** Counts what passes, and shows the panel. */
export async function show(state) {
  const body = { filters: filters(state), without: state.without };
  const signature = JSON.stringify(body);
  panel.hidden = false;
  if (signature === asked) return;
  try {
    const facets = await latest.run((signal) => post("api/facets", body, { signal }));
    if (!facets) return;
    asked = signature;
    render(facets, state);
  } catch (problem) {
    asked = "";
    if (!panel.childElementCount) panel.hidden = true;
    if (problem.status) console.warn(problem.message); // the results say the same to everybody
  }
}

export const forget = () => (asked = "");

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
        counted(facets.documents, "document"),
        hasFilters(state) ? " pass the filters" : " in all",
      ),
      dates(facets, state),
      ...Object.keys(NAMES).map((name) => values(name, facets, state)),
      hiding(state),
    ),
  );
  panel.classList.toggle("open", unfoldedPanel);
  if (focused) panel.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

/** On a narrow screen the panel is a button until it is wanted. */
function fold(state) {
  const count = chosen(state).length;
  const toggle = button(
    count ? `Filters (${count})` : "Filters",
    () => {
      unfoldedPanel = panel.classList.toggle("open");
      toggle.setAttribute("aria-expanded", String(unfoldedPanel));
    },
    { class: "fold", "aria-expanded": String(unfoldedPanel), "aria-controls": "filter-body", "data-key": "fold" },
  );
  return toggle;
}

function values(name, facets, state) {
  const given = facets[FACETS[name]] ?? [];
  const known = new Set(given.map((one) => one.value.toLowerCase()));
  const gone = state[name].filter((value) => !known.has(value.toLowerCase()));
  const all = [...gone.map((value) => ({ value, count: 0 })), ...given];
  if (all.length < 2 && !state[name].length) return null;
  const more = facets.more?.[FACETS[name]] ?? 0;
  const list = el("ul", { class: "plain" });
  const fill = (some) => list.replaceChildren(...some.map((one) => value(name, one, state)));
  const short = () => all.filter((one, at) => at < SHOWN || chosenIn(state[name], one.value));
  fill(unfolded.has(name) ? all : short());
  const wider = more ? `Show ${all.length} of ${all.length + more}` : `Show all ${all.length}`;
  const toggle =
    all.length > SHOWN &&
    button(
      unfolded.has(name) ? "Show fewer" : wider,
      () => {
        if (!unfolded.delete(name)) unfolded.add(name);
        fill(unfolded.has(name) ? all : short());
        toggle.textContent = unfolded.has(name) ? "Show fewer" : wider;
      },
      { class: "link", "data-key": `all:${name}` },
    );
  return el(
    "fieldset",
    { "data-filter": name },
    el("legend", {}, NAMES[name]),
    name === "patient" && all.length > SHOWN && find(all, more, fill, short),
    list,
    toggle,
    more > 0 && el("p", { class: "quiet" }, `${counted(more, "further value")} not listed`),
  );
}

/** A field that looks for a patient among all of them. */
function find(all, more, fill, short) {
  const looking = new Latest();
  const look = async (typed) => {
    if (!typed) return fill(short());
    if (!more) return fill(all.filter((one) => one.value.toLowerCase().includes(typed.toLowerCase())));
    const given = await looking.run((signal) =>
      get(`api/patients?${new URLSearchParams({ typed, limit: 20 })}`, { signal }),
    );
    return given && fill(given.patients.map((one) => ({ value: one.patient, count: one.documents })));
  };
  const soon = debounced((typed) => look(typed).catch(() => fill(short())), 150);
  return el("input", {
    type: "search",
    class: "find",
    placeholder: "Find a patient",
    "aria-label": "Find a patient",
    "data-key": "find:patient",
    oninput: (event) => soon(event.target.value.trim()),
  });
}

function value(name, { value, count }, state) {
  const box = el("input", {
    type: "checkbox",
    checked: chosenIn(state[name], value),
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

/** Whether a value is among others; the server, too, compares without case. */
const chosenIn = (values, value) => values.some((one) => one.toLowerCase() === value.toLowerCase());

function toggle(name, value, wanted) {
  const others = current()[name].filter((one) => !chosenIn([value], one));
  go({ [name]: wanted ? [...others, value] : others, k: "" });
}

function dates(facets, state) {
  const found = facets.dates ?? [];
  if (!found.length && !state.from && !state.to) return null;
  const choose = (from, to) => go({ from, to, k: "" });
  const day = (name, label) =>
    el(
      "label",
      {},
      label,
      el("input", {
        type: "date",
        value: state[name],
        "aria-invalid": turned(state) ? "true" : null,
        "data-key": `date:${name}`,
        onchange: (event) => go({ [name]: event.target.value, k: "" }),
      }),
    );
  return el(
    "fieldset",
    { "data-filter": "date" },
    el("legend", {}, "Date"),
    histogram(found, state, choose),
    el("div", { class: "days" }, day("from", "From"), day("to", "To")),
    turned(state) && el("p", { class: "wrong", role: "alert" }, turned(state)),
    facets.undated > 0 && el("p", { class: "quiet" }, `${counted(facets.undated, "document")} without a date`),
  );
}

/** What is wrong with two days of which the first is the later one. */
export function turned({ from, to }) {
  if (!from || !to || from <= to) return "";
  return `From (${from}) is after To (${to}), so that nothing passes. Exchange them, or remove one.`;
}

function hiding(state) {
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
    el("p", { class: "quiet" }, "Passages stay in which what you ask for stands at least once otherwise."),
  );
}

/** What is filtered by: [{words, changes}], and what takes it away. */
function chosen(state) {
  const lists = LISTS.filter((name) => name !== "without");
  const found = lists.flatMap((name) =>
    state[name].map((value) => ({
      words: `${NAMES[name]}: ${value}`,
      changes: { [name]: state[name].filter((one) => one !== value), k: "" },
    })),
  );
  if (state.from || state.to) {
    const words = `Date: ${state.from || "…"} to ${state.to || "…"}`;
    found.push({ words, changes: { from: "", to: "", k: "" } });
  }
  for (const flag of state.without) {
    found.push({
      words: HIDE[flag] ?? `Hide ${flag}`,
      changes: { without: state.without.filter((one) => one !== flag), k: "" },
    });
  }
  return found;
}

/** A button for every filter. */
export function chips(state) {
  const found = chosen(state);
  if (!found.length) return null;
  return el(
    "div",
    { class: "chips", role: "group", "aria-label": "Filters that are set" },
    ...found.map(({ words, changes }) =>
      el(
        "button",
        { type: "button", class: "chip", "aria-label": `Remove the filter ${words}`, onclick: () => go(changes) },
        words,
        el("span", { "aria-hidden": "true" }, " ×"),
      ),
    ),
    found.length > 1 && button("Remove all", () => go(without()), { class: "link" }),
  );
}

/** No filters. */
export const without = () => ({
  ...Object.fromEntries([...LISTS, "from", "to"].map((name) => [name, EMPTY[name]])),
  k: "",
});
