// The search box: a question, or an entity and an aspect side by side.

import { get } from "./api.js";
import { complete } from "./complete.js";
import { byId } from "./dom.js";
import { go } from "./state.js";

const form = byId("search");
const boxes = { query: byId("query"), entity: byId("entity"), aspect: byId("aspect") };

/** Listens; a search is a step in the history. */
export function start() {
  for (const radio of form.elements.kind) radio.addEventListener("change", () => switchTo(kind(), true));
  complete(boxes.entity, "Entities", entities);
  complete(boxes.aspect, "Aspects", aspects);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const asked = { q: "", entity: "", aspect: "", k: "", document: "", at: "", ask: "" };
    if (kind() === "pair")
      Object.assign(asked, { entity: boxes.entity.value.trim(), aspect: boxes.aspect.value.trim() });
    else asked.q = boxes.query.value.trim();
    go(asked);
  });
}

let filled = null; // what of the address the boxes were filled with

/** Shows what the address says; what somebody has typed since stays until the address asks for something else. */
export function fill(state) {
  const asked = JSON.stringify([state.q, state.entity, state.aspect]);
  if (asked === filled) return;
  filled = asked;
  boxes.query.value = state.q;
  boxes.entity.value = state.entity;
  boxes.aspect.value = state.aspect;
  if (state.entity || state.aspect) switchTo("pair");
  else if (state.q) switchTo("question");
}

/** Nothing is typed. */
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

async function entities(typed, signal) {
  if (!typed) return [];
  const { suggestions } = await get(`api/suggest?${new URLSearchParams({ typed, k: 8 })}`, { signal, quiet: true });
  return suggestions.map(({ name, kind, concept }) => ({
    value: name,
    kind,
    detail: concept ? [concept.code, concept.name !== name ? concept.name : ""].filter(Boolean).join(" ") : "",
  }));
}

async function aspects(typed, signal) {
  const given = await get(`api/aspects?${new URLSearchParams({ typed })}`, { signal, quiet: true });
  return given.aspects
    .slice(0, 8)
    .map((one) => ({ value: one.name, detail: one.heading !== one.name ? one.heading : "" }));
}
