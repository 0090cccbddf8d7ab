// The state of the page, in the fragment of the address. Users can bookmark and share it, back and forward work, and
// no server receives it.

export const LISTS = ["patient", "type", "section", "source", "without"]; // parameters with several values
const SINGLE = ["q", "entity", "aspect", "from", "to", "group", "k"];
export const PAGE = 10; // hits to add at a time
let maxHits = 100; // until the server reports its limit

// Parameters of views, not of the search: `view` names the view of a tab, and views declare the others.
const viewParameters = { single: ["view"], lists: [] };

/** Return the maximum number of hits of a search, after setting it if a number is passed. */
export const hitLimit = (limit = maxHits) => (maxHits = limit);

const emptyState = (single, lists) =>
  Object.fromEntries([...single.map((name) => [name, ""]), ...lists.map((name) => [name, []])]);

/** The state without a search. */
export const EMPTY = Object.freeze(emptyState(SINGLE, LISTS));

/** Return the changes that remove the parameters of views, so that only the search remains. */
export const noView = () => emptyState(viewParameters.single, viewParameters.lists);

/** Declare the parameters of a view. */
export function declare({ single = [], lists = [] }) {
  const known = [...SINGLE, ...LISTS, ...viewParameters.single, ...viewParameters.lists];
  const duplicates = [...single, ...lists].filter((name) => known.includes(name));
  if (duplicates.length) {
    const fix = "choose other names for the parameters of the view";
    throw new Error(`The address already has ${duplicates.join(", ")}. Fix: ${fix}.`);
  }
  viewParameters.single.push(...single);
  viewParameters.lists.push(...lists);
}

/** Return the state of a fragment, without unknown parameters. */
export function parse(fragment) {
  const parameters = new URLSearchParams(fragment.replace(/^#/, ""));
  const state = {};
  for (const name of [...SINGLE, ...viewParameters.single]) state[name] = parameters.get(name) ?? "";
  for (const name of [...LISTS, ...viewParameters.lists]) state[name] = parameters.getAll(name);
  return state;
}

/** Return the fragment of a state, without `#` and without empty parameters. */
export function toFragment(state) {
  const out = new URLSearchParams();
  for (const name of [...SINGLE, ...viewParameters.single]) if (state[name]) out.set(name, state[name]);
  for (const name of [...LISTS, ...viewParameters.lists])
    for (const value of state[name] ?? []) out.append(name, value);
  return out.toString();
}

export const current = () => parse(location.hash);

/** Change the state as a step in the history, or in place with `replace`. Listeners run even if nothing changes. */
export function go(changes, { replace = false } = {}) {
  const next = "#" + toFragment({ ...current(), ...changes });
  if (replace || next === (location.hash || "#")) {
    history.replaceState(null, "", next);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else location.hash = next;
}

export const hasQuery = (state) => Boolean(state.q.trim() || state.entity.trim() || state.aspect.trim());
export const hasFilters = (state) => Boolean(state.from || state.to || LISTS.some((name) => state[name].length));

/** Return the query as the API expects it. */
export function query(state) {
  return state.q ? { query: state.q } : { entity: state.entity, aspect: state.aspect };
}

/** Return the filters as the API expects them. */
export function filters(state) {
  const values = {};
  if (state.patient.length) values.patient = state.patient;
  if (state.type.length) values.type = state.type;
  if (state.section.length) values.aspect = state.section;
  if (state.source.length) values.source = state.source;
  if (state.from || state.to) values.date = `${state.from}..${state.to}`;
  return values;
}

/** Return the body of a search request. */
export function search(state) {
  const k = Math.min(maxHits, Math.max(PAGE, Number.parseInt(state.k, 10) || PAGE));
  return { ...query(state), k, filters: filters(state), without: state.without, group: state.group || null };
}
