// What is searched and shown, kept in the fragment of the address: it can be bookmarked and shared, back and forward
// work, and no server's log sees it.

export const LISTS = ["patient", "type", "section", "source", "without"]; // may be repeated
const SINGLE = ["q", "entity", "aspect", "from", "to", "group", "k", "document", "at", "ask"];
export const PAGE = 10; // hits
let most = 100; // hits, at most, until the server says how many

/** How many hits a search can have, or shall have from now on. */
export const mostHits = (allowed = most) => (most = allowed);

export const EMPTY = Object.freeze({
  q: "",
  entity: "",
  aspect: "",
  from: "",
  to: "",
  group: "",
  k: "",
  document: "",
  at: "",
  ask: "",
  patient: [],
  type: [],
  section: [],
  source: [],
  without: [],
});

/** The state that a fragment stands for; what it does not know is left out. */
export function parse(fragment) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const state = { ...EMPTY };
  for (const name of SINGLE) state[name] = given.get(name) ?? "";
  for (const name of LISTS) state[name] = given.getAll(name);
  return state;
}

/** The fragment, without `#`. */
export function written(state) {
  const out = new URLSearchParams();
  for (const name of SINGLE) if (state[name]) out.set(name, state[name]);
  for (const name of LISTS) for (const value of state[name]) out.append(name, value);
  return out.toString();
}

export const current = () => parse(location.hash);

/** Changes the state: a step in the history, unless `replace`. Listeners hear of it either way, also if nothing changes. */
export function go(changes, { replace = false } = {}) {
  const next = "#" + written({ ...current(), ...changes });
  if (replace || next === (location.hash || "#")) {
    history.replaceState(null, "", next);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else location.hash = next;
}

export const hasQuery = (state) => Boolean(state.q.trim() || state.entity.trim() || state.aspect.trim());
export const hasFilters = (state) => Boolean(state.from || state.to || LISTS.some((name) => state[name].length));

/** The query as the API takes it. */
export function query(state) {
  return state.q ? { query: state.q } : { entity: state.entity, aspect: state.aspect };
}

/** The filters as the API takes them. */
export function filters(state) {
  const wanted = {};
  if (state.patient.length) wanted.patient = state.patient;
  if (state.type.length) wanted.type = state.type;
  if (state.section.length) wanted.aspect = state.section;
  if (state.source.length) wanted.source = state.source;
  if (state.from || state.to) wanted.date = `${state.from}..${state.to}`;
  return wanted;
}

/** The body of a search. */
export function search(state) {
  const k = Math.min(most, Math.max(PAGE, Number.parseInt(state.k, 10) || PAGE));
  return { ...query(state), k, filters: filters(state), without: state.without, group: state.group || null };
}
