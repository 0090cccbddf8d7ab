// The search box: a question, or an entity and an aspect side by side.

import { get } from "./api.js";
import { complete } from "./complete.js";
import { byId } from "./dom.js";
import { go, noView } from "./state.js";

const form = byId("search");
const boxes = { query: byId("query"), entity: byId("entity"), aspect: byId("aspect") };

/** Add the listeners. Each search is a step in the history. */
export function start() {
  for (const radio of form.elements.kind) radio.addEventListener("change", () => switchTo(kind(), true));
  complete(boxes.entity, "Entities", entities);
  complete(boxes.aspect, "Aspects", aspects);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const changes = { q: "", entity: "", aspect: "", k: "", ...noView() };
    if (kind() === "pair")
      Object.assign(changes, { entity: boxes.entity.value.trim(), aspect: boxes.aspect.value.trim() });
    else changes.q = boxes.query.value.trim();
    go(changes);
  });
}

let filledQuery = null; // the query of the address that last filled the boxes

/** Fill the boxes with the query of the address. Text that the user types stays until that query changes. */
export function fill(state) {
  const query = JSON.stringify([state.q, state.entity, state.aspect]);
  if (query === filledQuery) return;
  filledQuery = query;
  boxes.query.value = state.q;
  boxes.entity.value = state.entity;
  boxes.aspect.value = state.aspect;
  if (state.entity || state.aspect) switchTo("pair");
  else if (state.q) switchTo("question");
}

/** Empty the boxes. */
export function clear() {
  for (const box of Object.values(boxes)) box.value = "";
}

const kind = () => form.elements.kind.value;

function switchTo(name, focus = false) {
  form.elements.kind.value = name;
  byId("question-boxes").hidden = name !== "question";
  byId("pair-boxes").hidden = name !== "pair";
  if (focus) boxes[name === "pair" ? "entity" : "query"].focus({ preventScroll: true });
}

async function entities(prefix, signal) {
  if (!prefix) return [];
  const { suggestions } = await get(`api/suggest?${new URLSearchParams({ prefix, k: 8 })}`, { signal, quiet: true });
  return suggestions.map(({ name, kind, concept }) => ({
    value: name,
    kind,
    detail: concept ? [concept.code, concept.name !== name ? concept.name : ""].filter(Boolean).join(" ") : "",
  }));
}

async function aspects(prefix, signal) {
  const completions = await get(`api/aspects?${new URLSearchParams({ prefix })}`, { signal, quiet: true });
  return completions.aspects
    .slice(0, 8)
    .map(({ name, heading }) => ({ value: name, detail: heading !== name ? heading : "" }));
}
