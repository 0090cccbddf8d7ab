// The empty page teaches: three searches, one of each kind, that find something in the sample notes.

import { el } from "./dom.js";
import { EMPTY, written } from "./state.js";

const EXAMPLES = [
  {
    title: "Ask a question",
    words: "What was the kidney injury attributed to?",
    says: "Passages that answer come first; the sentences that matter are shaded, the words of the question are marked.",
    state: { q: "What was the kidney injury attributed to?" },
  },
  {
    title: "Name an entity and an aspect",
    words: "stroke · family history",
    says: "The aspect is what a section is about, whatever its heading says. A relative’s stroke is marked as such.",
    state: { entity: "stroke", aspect: "family history" },
  },
  {
    title: "Make a list of patients",
    words: "atrial fibrillation in discharge summaries, not negated, not a relative’s, by patient",
    says: "One entry for each patient, with the others below. Filters by date, type and section narrow it.",
    state: { q: "atrial fibrillation", group: "patient", type: ["Discharge summary"], without: ["negated", "family"] },
  },
];

export function examples() {
  return el(
    "div",
    { class: "state empty" },
    el("h2", {}, "Find the passage that answers"),
    el(
      "p",
      {},
      "Search the notes of this library by words and by meaning. Open a report to ask it for the exact words. Three examples:",
    ),
    el(
      "ul",
      { class: "examples plain" },
      ...EXAMPLES.map((one) =>
        el(
          "li",
          {},
          el(
            "a",
            { class: "card", href: "#" + written({ ...EMPTY, ...one.state }) },
            el("strong", {}, one.title),
            el("span", { class: "sample" }, one.words),
            el("span", { class: "quiet" }, one.says),
          ),
        ),
      ),
    ),
    el(
      "p",
      { class: "quiet" },
      "Known words: “a phrase”, +must, -not, entity:gout, heading:allergies. The address holds the whole search: bookmark or share it. capr is a research tool; it is not a medical device.",
    ),
  );
}
