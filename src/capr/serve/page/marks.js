// Text with marks: evidence around mentions around words of the query. A mark that crosses an outer one is cut in two.

import { el } from "./dom.js";
import { softBreaks } from "./wrapped.js";

export const FLAGS = ["negated", "possible", "hypothetical", "historical", "family"];
const SIGNS = { negated: "no", possible: "?", hypothetical: "if", historical: "past", family: "family" };

/** The text of a `Text`, whole or from `begin` to `end`, with marks in layers, the outermost first. */
export function marked(text, layers, begin = text.begin, end = text.end) {
  const soft = [...(text.soft ??= softBreaks(text.text))];
  const sorted = layers.map(apart);
  const out = document.createDocumentFragment();
  out.append(...pieces(text, sorted, 0, begin, end, soft));
  return out;
}

/** Marks in the order of the text; one that begins before the last has ended is left out. */
function apart(marks) {
  const found = [];
  for (const mark of [...marks].sort((a, b) => a.begin - b.begin || b.end - a.end)) {
    if (mark.end > mark.begin && (!found.length || mark.begin >= found.at(-1).end)) found.push(mark);
  }
  return found;
}

function pieces(text, layers, depth, begin, end, soft) {
  if (begin >= end) return [];
  if (depth === layers.length) return plain(text, begin, end, soft);
  const found = [];
  let at = begin;
  for (const mark of layers[depth]) {
    if (mark.end <= at || mark.begin >= end) continue;
    const from = Math.max(mark.begin, at);
    const to = Math.min(mark.end, end);
    found.push(...pieces(text, layers, depth + 1, at, from, soft));
    const element = mark.make(from === mark.begin);
    element.append(...pieces(text, layers, depth + 1, from, to, soft));
    found.push(element);
    at = to;
  }
  found.push(...pieces(text, layers, depth + 1, at, end, soft));
  return found;
}

/** Text nodes; line breaks that nobody meant stand in elements that show them as blanks. */
function plain(text, begin, end, soft) {
  let from = text.unit(begin);
  const to = text.unit(end);
  const found = [];
  for (const unit of soft) {
    if (unit < from || unit >= to) continue;
    if (unit > from) found.push(text.text.slice(from, unit));
    found.push(el("span", { class: "soft" }, "\n"));
    from = unit + 1;
  }
  if (to > from) found.push(text.text.slice(from, to));
  return found;
}

/** A mark that is only a look. */
export const range = (begin, end, attributes, name = "span") => ({
  begin,
  end,
  make: () => el(name, attributes),
});

/** The words of the query, and names of its entities. */
export const words = (spans) => spans.map(([begin, end]) => range(begin, end, { class: "word" }, "mark"));

/** Sentences that speak of the query, the stronger the better they do. */
export function evidence(sentences) {
  const best = Math.max(0, ...sentences.map((sentence) => sentence.score));
  return sentences.map(({ begin, end, score }) =>
    range(begin, end, { class: score >= best * 0.75 ? "evidence best" : "evidence" }),
  );
}

/** Diseases, symptoms and drugs. One with a context can be focused, and says why. */
export function mentions(found) {
  return found.map((mention) => ({
    begin: mention.begin,
    end: mention.end,
    make: (first) => mentionMark(mention, first),
  }));
}

function mentionMark(mention, first) {
  const flags = FLAGS.filter((flag) => mention[flag]);
  const element = el("span", { class: ["mention", mention.kind, ...flags].join(" "), "data-begin": mention.begin });
  element.mention = mention;
  if (flags.length && first) {
    element.dataset.signs = flags.map((flag) => SIGNS[flag]).join(" ");
    element.setAttribute("role", "button");
    element.setAttribute("aria-label", `${mention.text}: ${flags.map((flag) => reason(mention, flag)).join("; ")}`);
    element.tabIndex = -1;
  }
  return element;
}

/** `negated by “denies”`. */
export function reason(mention, flag) {
  const cue = mention.cues?.[flag];
  const names = { family: "of a relative", historical: "in the past" };
  return cue?.text ? `${names[flag] ?? flag}, by “${cue.text}”` : (names[flag] ?? flag);
}
