// The examples on the empty page: one search of each kind, with hits in the sample notes.

import { el } from "./dom.js";
import { EMPTY, toFragment } from "./state.js";

const EXAMPLES = [
  {
    title: "Ask a question",
    words: "What was the kidney injury attributed to?",
    explanation: "The best passages come first. Shading shows the evidence, and marks show the words of the question.",
    state: { q: "What was the kidney injury attributed to?" },
  },
  {
    title: "Name an entity and an aspect",
    words: "stroke · family history",
    explanation: "The aspect is what a section is about, whatever its heading says. A mark shows that a relative had the stroke.",
    state: { entity: "stroke", aspect: "family history" },
  },
  {
    title: "Make a list of patients",
    words: "atrial fibrillation in discharge summaries, not negated, not a relative’s, by patient",
    explanation: "One entry for each patient, with the others below. Filters by date, type and section narrow the list.",
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
      ...EXAMPLES.map((example) =>
        el(
          "li",
          {},
          el(
            "a",
            { class: "card", href: "#" + toFragment({ ...EMPTY, ...example.state }) },
            el("strong", {}, example.title),
            el("span", { class: "sample" }, example.words),
            el("span", { class: "quiet" }, example.explanation),
          ),
        ),
      ),
    ),
    el(
      "p",
      { class: "quiet" },
      "Operators: “a phrase”, +must, -not, entity:gout, heading:allergies. ",
      "The address contains the whole search, so you can bookmark or share it. capr is a research tool; it is not a medical device.",
    ),
  );
}
