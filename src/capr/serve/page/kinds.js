// What a document mentions, by kind. A click goes from one place to the next.

import { el } from "./dom.js";
import { FLAGS } from "./marks.js";

const KINDS = { disease: "Diseases", symptom: "Symptoms", drug: "Drugs" };
const SAID = {
  negated: "negated",
  possible: "possible",
  hypothetical: "hypothetical",
  historical: "past",
  family: "family",
};

/** Folded lists; `jump(mention)` is called with the one that is wanted. */
export function kinds(mentions, jump) {
  const names = [...new Set([...Object.keys(KINDS), ...mentions.map((one) => one.kind)])];
  const lists = names
    .map((kind) => [kind, mentions.filter((one) => one.kind === kind)])
    .filter(([, some]) => some.length);
  return el(
    "section",
    { class: "kinds", "aria-label": "Mentions" },
    el("h3", {}, "Mentions"),
    lists.length ? null : el("p", { class: "quiet" }, "No disease, symptom or drug was found in this report."),
    ...lists.map(([kind, some]) =>
      el(
        "details",
        {},
        el(
          "summary",
          {},
          el("span", { class: `dot ${kind}` }),
          `${KINDS[kind] ?? kind} `,
          el("span", { class: "count" }, String(some.length)),
        ),
        el("ul", { class: "plain" }, ...grouped(some).map((group) => line(group, jump))),
      ),
    ),
  );
}

/** Mentions of the same thing in the same context. */
function grouped(mentions) {
  const groups = new Map();
  for (const one of mentions) {
    const flags = FLAGS.filter((flag) => one[flag]);
    const name = one.concept?.name ?? one.text.toLowerCase();
    const key = `${one.concept?.code ?? name} ${flags}`;
    if (!groups.has(key)) groups.set(key, { name, flags, concept: one.concept, places: [] });
    groups.get(key).places.push(one);
  }
  return [...groups.values()].sort((a, b) => b.places.length - a.places.length || a.name.localeCompare(b.name));
}

function line({ name, flags, concept, places }, jump) {
  let next = 0;
  return el(
    "li",
    {},
    el(
      "button",
      { type: "button", onclick: () => jump(places[next++ % places.length]), title: concept?.code ?? "" },
      el("span", { class: flags.includes("negated") ? "name struck" : "name" }, name),
      ...flags.map((flag) => el("span", { class: `flag ${flag}` }, SAID[flag])),
      places.length > 1 ? el("span", { class: "count" }, `${places.length} places`) : null,
    ),
  );
}
