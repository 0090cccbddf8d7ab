// Text with nested marks: evidence, mentions and words of the query. A mark that crosses an outer one is split.

import { el } from "./dom.js";
import { softBreaks } from "./line_breaks.js";

export const FLAGS = ["negated", "possible", "hypothetical", "historical", "family"];
const SIGNS = { negated: "no", possible: "?", hypothetical: "if", historical: "past", family: "family" };

/** Add the span [begin, end) of a `Text` to an element, with layers of marks, the outermost first. */
export function mark(element, text, layers, begin = text.begin, end = text.end) {
  text.soft ??= softBreaks(text.text);
  fill(element, text, layers.map(withoutOverlaps), 0, begin, end);
}

/** Return marks in the order of the text, without those that overlap an earlier one. */
function withoutOverlaps(marks) {
  const separate = [];
  for (const mark of [...marks].sort((a, b) => a.begin - b.begin || b.end - a.end)) {
    if (mark.end > mark.begin && (!separate.length || mark.begin >= separate.at(-1).end)) separate.push(mark);
  }
  return separate;
}

function fill(parent, text, layers, depth, begin, end) {
  if (begin >= end) return;
  if (depth === layers.length) {
    addText(parent, text, begin, end);
    return;
  }
  const marks = layers[depth];
  let position = begin;
  for (let index = first(marks, (mark) => mark.end > begin); index < marks.length; index++) {
    const current = marks[index];
    if (current.begin >= end) break;
    const from = Math.max(current.begin, position);
    const to = Math.min(current.end, end);
    fill(parent, text, layers, depth + 1, position, from);
    const element = current.make(from === current.begin);
    fill(element.content ?? element, text, layers, depth + 1, from, to);
    parent.append(element);
    position = to;
  }
  fill(parent, text, layers, depth + 1, position, end);
}

/** Return the index of the first item for which a monotonic condition is true, by binary search. */
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

/** Add text nodes. Soft line breaks get elements that show them as spaces. */
function addText(parent, text, begin, end) {
  let from = text.unit(begin);
  const to = text.unit(end);
  const { soft } = text;
  for (let index = first(soft, (unit) => unit >= from); index < soft.length && soft[index] < to; index++) {
    const unit = soft[index];
    if (unit > from) parent.append(text.text.slice(from, unit));
    parent.append(el("span", { class: "soft" }, "\n"));
    from = unit + 1;
  }
  if (to > from) parent.append(text.text.slice(from, to));
}

/** Return a mark that only styles its text. */
export const range = (begin, end, attributes, name = "span") => ({
  begin,
  end,
  make: () => el(name, attributes),
});

/** Return marks of the words of the query, and of the names of its entities. */
export const words = (spans) => spans.map(([begin, end]) => range(begin, end, { class: "word" }, "mark"));

/** Return marks of the evidence sentences, stronger for the best ones. */
export function evidence(sentences) {
  const best = Math.max(0, ...sentences.map((sentence) => sentence.score));
  return sentences.map(({ begin, end, score }) =>
    range(begin, end, { class: score >= best * 0.75 ? "evidence best" : "evidence" }),
  );
}

/** Return marks of diseases, symptoms and drugs. A mark with a context can have the focus, and explains it. */
export function mentions(mentionList) {
  return mentionList.map((mention) => ({
    begin: mention.begin,
    end: mention.end,
    make: (first) => mentionMark(mention, first),
  }));
}

function mentionMark(mention, first) {
  const flags = FLAGS.filter((flag) => mention[flag]);
  const element = el("span", { class: ["mention", mention.kind, ...flags].join(" "), "data-begin": mention.begin });
  element.mention = mention;
  if (!flags.length || !first) element.classList.add("mention-text");
  else {
    element.content = el("span", { class: "mention-text" }); // separate from the sign, which must not be struck out
    element.append(sign(flags), element.content);
    element.setAttribute("role", "button");
    element.setAttribute("aria-label", `${mention.text}: ${flags.map((flag) => reason(mention, flag)).join("; ")}`);
    element.tabIndex = -1;
  }
  return element;
}

/** Return the sign before a mention with a context. CSS shows its label, so the text of the note stays exact. */
export function sign(flags) {
  return el("span", { class: "sign", "data-signs": flags.map((flag) => SIGNS[flag]).join(" · ") });
}

/** Return the reason for a context: `negated, by “denies”`. */
export function reason(mention, flag) {
  const cue = mention.cues?.[flag];
  const names = { family: "of a relative", historical: "in the past" };
  return cue?.text ? `${names[flag] ?? flag}, by “${cue.text}”` : (names[flag] ?? flag);
}
