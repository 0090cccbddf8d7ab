// The mentions of a document by kind. Each click on a name goes to its next mention.

import { el } from "./dom.js";
import { FLAGS } from "./marks.js";

const KINDS = { disease: "Diseases", symptom: "Symptoms", drug: "Drugs" };
const CONTEXTS = {
  negated: "negated",
  possible: "possible",
  hypothetical: "hypothetical",
  historical: "past",
  family: "family",
};

/** Return folded lists. They call `jump(mention)` on a click. */
export function mentionLists(mentions, jump) {
  const names = [...new Set([...Object.keys(KINDS), ...mentions.map((mention) => mention.kind)])];
  const lists = names
    .map((kind) => [kind, mentions.filter((mention) => mention.kind === kind)])
    .filter(([, members]) => members.length);
  return el(
    "section",
    { class: "kinds", "aria-label": "Mentions" },
    el("h3", {}, "Mentions"),
    lists.length ? null : el("p", { class: "quiet" }, "This report mentions no disease, symptom or drug."),
    ...lists.map(([kind, members]) =>
      el(
        "details",
        {},
        el(
          "summary",
          {},
          el("span", { class: `dot ${kind}` }),
          `${KINDS[kind] ?? kind} `,
          el("span", { class: "count" }, String(members.length)),
        ),
        el("ul", { class: "plain" }, ...groupMentions(members).map((group) => line(group, jump))),
      ),
    ),
  );
}

/** Group the mentions of the same concept in the same context. */
function groupMentions(mentions) {
  const groups = new Map();
  for (const mention of mentions) {
    const flags = FLAGS.filter((flag) => mention[flag]);
    const name = mention.concept?.name ?? mention.text.toLowerCase();
    const key = `${mention.concept?.code ?? name} ${flags}`;
    if (!groups.has(key)) groups.set(key, { name, flags, concept: mention.concept, mentions: [] });
    groups.get(key).mentions.push(mention);
  }
  return [...groups.values()].sort((a, b) => b.mentions.length - a.mentions.length || a.name.localeCompare(b.name));
}

function line({ name, flags, concept, mentions }, jump) {
  let next = 0;
  return el(
    "li",
    {},
    el(
      "button",
      { type: "button", onclick: () => jump(mentions[next++ % mentions.length]), title: concept?.code ?? "" },
      el("span", { class: flags.includes("negated") ? "name struck" : "name" }, name),
      ...flags.map((flag) => el("span", { class: `flag ${flag}` }, CONTEXTS[flag])),
      mentions.length > 1 ? el("span", { class: "count" }, `${mentions.length} mentions`) : null,
    ),
  );
}
