// The query's score along a document, sentence by sentence, as in figure 4 of the CDV paper. Click or keys jump.

import { el, svg } from "./dom.js";

const ROW = 34; // height of a row, in units of the drawing
const LETTER = 6.6; // pixels of a letter of a heading, about
const BY = {
  discourse: "by the discourse model",
  encoder: "by the encoder",
  words: "by words of the query",
};

/** Which scores say something: halves if both were asked for, and both together last. */
export function rowsOf(sentences) {
  const told = (name) => sentences.some((one) => typeof one[name] === "number" && Math.abs(one[name]) >= 0.005);
  const halves = ["entity", "aspect"].filter(told);
  if (halves.length === 2) return ["entity", "aspect", "both"];
  return told("both") || !halves.length ? ["both"] : halves;
}

/** The sentences that no neighbour surpasses, as places among all, in the order of the text. */
export function peaks(values, count = 8) {
  const tops = values
    .map((value, at) => [value, at])
    .filter(
      ([value, at]) => value > 0 && value >= (values[at - 1] ?? -Infinity) && value > (values[at + 1] ?? -Infinity),
    );
  return tops
    .sort((a, b) => b[0] - a[0])
    .slice(0, count)
    .map(([, at]) => at)
    .sort((a, b) => a - b);
}

/**
 * The strip. `scores` is what the API gives; `words(sentence)` its text; `jump(sentence)` is called when somebody goes
 * to a sentence.
 */
export function strip(scores, query, words, jump) {
  const { sentences, headings = [], by } = scores;
  const rows = rowsOf(sentences);
  const ranked = rows.at(-1);
  const tops = peaks(sentences.map((one) => one[ranked]));
  const drawing = drawn(sentences, rows, headings, by);
  const cursor = svg("rect", { class: "cursor", y: 0, width: 1, height: rows.length * ROW, visibility: "hidden" });
  drawing.append(cursor);
  const caption = el(
    "p",
    { class: "strip-caption quiet" },
    `${sentences.length} sentences, scored ${BY[by] ?? by ?? ""}. Click, or use the arrow keys, to go to one.`,
  );
  const bar = el(
    "div",
    {
      class: "strip-bar",
      role: "slider",
      tabindex: "0",
      "aria-orientation": "horizontal",
      "aria-label": "Score along the document",
      "aria-valuemin": 1,
      "aria-valuemax": sentences.length,
      "aria-valuenow": 1,
      "aria-valuetext": `${sentences.length} sentences; best at sentence ${best(sentences, ranked) + 1}`,
    },
    drawing,
  );
  drawing.style.setProperty("--rows", rows.length);

  let at = -1;
  const told = (place) =>
    `${place + 1} of ${sentences.length}: ${rows.map((name) => `${rows.length > 1 ? `${name} ` : ""}${sentences[place][name].toFixed(2)}`).join(", ")}${section(headings, sentences[place])}`;
  const point = (place) => {
    cursor.setAttribute("x", place);
    cursor.setAttribute("visibility", "visible");
    caption.replaceChildren(el("strong", {}, told(place)), ` ${words(sentences[place])}`);
  };
  const goTo = (place) => {
    at = Math.max(0, Math.min(sentences.length - 1, place));
    point(at);
    bar.setAttribute("aria-valuenow", at + 1);
    bar.setAttribute("aria-valuetext", `Sentence ${told(at)}. ${words(sentences[at])}`);
    jump(sentences[at]);
  };
  const under = (event) => {
    const box = drawing.getBoundingClientRect();
    return Math.max(
      0,
      Math.min(sentences.length - 1, Math.floor(((event.clientX - box.left) / box.width) * sentences.length)),
    );
  };
  bar.addEventListener("pointermove", (event) => point(under(event)));
  bar.addEventListener("pointerleave", () => at >= 0 && point(at));
  bar.addEventListener("click", (event) => goTo(under(event)));
  bar.addEventListener("keydown", (event) => {
    const to = {
      ArrowRight: at + 1,
      ArrowUp: at + 1,
      ArrowLeft: at - 1,
      ArrowDown: at - 1,
      Home: 0,
      End: sentences.length - 1,
      PageDown: tops.find((top) => top > at),
      PageUp: tops.findLast((top) => top < at),
      Enter: best(sentences, ranked),
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    goTo(to);
  });

  const names = el(
    "div",
    { class: "strip-names", "aria-hidden": "true" },
    ...rows.map((name) => el("span", {}, rows.length > 1 ? name : "score")),
  );
  const ruler = el("div", { class: "ruler", "aria-hidden": "true" });
  const measured = new ResizeObserver(() => label(ruler, headings, sentences));
  measured.observe(ruler);
  const whole = el(
    "section",
    { class: "strip", "aria-label": `Where this report speaks of ${query}` },
    el("h3", {}, "Where it speaks of ", el("q", {}, query)),
    el("div", { class: "strip-grid" }, names, bar, ruler),
    caption,
  );
  new ResizeObserver(() => document.documentElement.style.setProperty("--strip", `${whole.offsetHeight}px`)).observe(
    whole,
  );
  return whole;
}

const best = (sentences, name) => sentences.reduce((top, one, at) => (one[name] > sentences[top][name] ? at : top), 0);

function section(headings, sentence) {
  const found = headings.findLast((one) => one.begin <= sentence.begin);
  return found ? `, ${last(found.heading)}.` : ".";
}

const last = (heading) => heading.split(" | ").at(-1).trim();

/** The sections, with the place of the first sentence of each. */
function starts(headings, sentences) {
  return headings
    .map(({ begin, heading }) => ({ at: sentences.findIndex((one) => one.end > begin), heading: last(heading) }))
    .filter(({ at }) => at >= 0);
}

function drawn(sentences, rows, headings, by) {
  const count = Math.max(1, sentences.length);
  const drawing = svg("svg", {
    viewBox: `0 0 ${count} ${rows.length * ROW}`,
    preserveAspectRatio: "none",
    "aria-hidden": "true",
  });
  starts(headings, sentences).forEach(({ at }, number, all) => {
    const to = all[number + 1]?.at ?? count;
    if (number % 2)
      drawing.append(svg("rect", { class: "band", x: at, y: 0, width: to - at, height: rows.length * ROW }));
  });
  const values = rows.flatMap((name) => sentences.map((one) => one[name]));
  const highest = Math.max(0.005, ...values);
  // Cosines of an encoder are all well above 0: there the lowest is the ground, or nothing could be told apart.
  const lowest = by === "encoder" ? Math.min(highest - 0.01, ...values) : 0;
  rows.forEach((name, row) => {
    const ground = (row + 1) * ROW;
    const path = sentences.map((one, at) => {
      const tall = Math.max(0, (one[name] - lowest) / (highest - lowest)) * (ROW - 3);
      return tall > 0 ? `M${at + 0.06} ${ground}V${(ground - tall).toFixed(2)}H${at + 0.94}V${ground}z` : "";
    });
    drawing.append(
      svg("path", { class: `row ${name}`, d: path.join("") }),
      svg("line", { class: "ground", x1: 0, x2: count, y1: ground, y2: ground }),
    );
  });
  return drawing;
}

/** Names of sections under the strip, where there is room for them. */
function label(ruler, headings, sentences) {
  const width = ruler.clientWidth;
  const all = starts(headings, sentences);
  let free = 0;
  ruler.replaceChildren(
    ...all.flatMap(({ at, heading }, number) => {
      const left = (at / sentences.length) * width;
      const room = ((all[number + 1]?.at ?? sentences.length) / sentences.length) * width - left;
      const short =
        heading.length * LETTER > Math.max(room, 56)
          ? `${heading.slice(0, Math.max(5, Math.floor(Math.max(room, 56) / LETTER) - 1))}…`
          : heading;
      if (left < free || left + 30 > width) return [];
      free = left + short.length * LETTER + 8;
      const name = el("span", { title: heading }, short);
      name.style.setProperty("left", `${left}px`);
      return [name];
    }),
  );
}
