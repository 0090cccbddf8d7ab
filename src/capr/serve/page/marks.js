// Text with marks: evidence around mentions around words of the query. A mark that crosses an outer one is cut in two.

import { el } from "./dom.js";
import { softBreaks } from "./wrapped.js";

export const FLAGS = ["negated", "possible", "hypothetical", "historical", "family"];
const SIGNS = { negated: "no", possible: "?", hypothetical: "if", historical: "past", family: "family" };

/** Puts the text of a `Text`, whole or from `begin` to `end`, into an element, with marks in layers, the outermost first. */
export function mark(element, text, layers, begin = text.begin, end = text.end) {
  text.soft ??= softBreaks(text.text);
  fill(element, text, layers.map(apart), 0, begin, end);
}

/** Marks in the order of the text; one that begins before the last has ended is left out. */
function apart(marks) {
  const found = [];
  for (const mark of [...marks].sort((a, b) => a.begin - b.begin || b.end - a.end)) {
    if (mark.end > mark.begin && (!found.length || mark.begin >= found.at(-1).end)) found.push(mark);
  }
  return found;
}

function fill(parent, text, layers, depth, begin, end) {
  if (begin >= end) return;
  if (depth === layers.length) {
    plain(parent, text, begin, end);
    return;
  }
  const marks = layers[depth];
  let at = begin;
  for (let number = first(marks, (one) => one.end > begin); number < marks.length; number++) {
    const one = marks[number];
    if (one.begin >= end) break;
    const from = Math.max(one.begin, at);
    const to = Math.min(one.end, end);
    fill(parent, text, layers, depth + 1, at, from);
    const element = one.make(from === one.begin);
    fill(element.said ?? element, text, layers, depth + 1, from, to);
    parent.append(element);
    at = to;
  }
  fill(parent, text, layers, depth + 1, at, end);
}

/** The number of the first of an ordered list of which something is true. */
function first(list, isTrue) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isTrue(list[middle])) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Text nodes; line breaks that nobody meant stand in elements that show them as blanks. */
function plain(parent, text, begin, end) {
  let from = text.unit(begin);
  const to = text.unit(end);
  const { soft } = text;
  for (let number = first(soft, (unit) => unit >= from); number < soft.length && soft[number] < to; number++) {
    const unit = soft[number];
    if (unit > from) parent.append(text.text.slice(from, unit));
    parent.append(el("span", { class: "soft" }, "\n"));
    from = unit + 1;
  }
  if (to > from) parent.append(text.text.slice(from, to));
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
  if (!flags.length || !first) element.classList.add("said");
  else {
    element.said = el("span", { class: "said" }); // apart from the sign, which must not be struck out, too
    element.append(sign(flags), element.said);
    element.setAttribute("role", "button");
    element.setAttribute("aria-label", `${mention.text}: ${flags.map((flag) => reason(mention, flag)).join("; ")}`);
    element.tabIndex = -1;
  }
  return element;
}

/** What stands before a mention with a context: a look without text, so that the text of the note stays as it is. */
export function sign(flags) {
  return el("span", { class: "sign", "data-signs": flags.map((flag) => SIGNS[flag]).join(" · ") });
}

/** `negated by “denies”`. */
export function reason(mention, flag) {
  const cue = mention.cues?.[flag];
  const names = { family: "of a relative", historical: "in the past" };
  return cue?.text ? `${names[flag] ?? flag}, by “${cue.text}”` : (names[flag] ?? flag);
}
