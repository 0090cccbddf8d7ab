// The scores of the sentences of a document for the query, as in figure 4 of the CDV paper, with click and keyboard.

import { el, svg } from "./dom.js";

const ROW = 34; // height of a row in units of the drawing
const LETTER = 6.6; // approximate width of a letter of a heading in pixels
const BY = {
  discourse: "by the discourse model",
  encoder: "by the encoder",
  words: "by words of the query",
};

/** Return the scores to draw: those of entity and aspect if both have scores, and those of both together last. */
export function rowsOf(sentences) {
  const hasScores = (name) =>
    sentences.some(({ [name]: score }) => typeof score === "number" && Math.abs(score) >= 0.005);
  const halves = ["entity", "aspect"].filter(hasScores);
  if (halves.length === 2) return ["entity", "aspect", "both"];
  return hasScores("both") || !halves.length ? ["both"] : halves;
}

/** Return the indexes of the highest local maxima, in the order of the text. */
export function peaks(values, count = 8) {
  const tops = values
    .map((value, index) => [value, index])
    .filter(
      ([value, index]) =>
        value > 0 && value >= (values[index - 1] ?? -Infinity) && value > (values[index + 1] ?? -Infinity),
    );
  return tops
    .sort((a, b) => b[0] - a[0])
    .slice(0, count)
    .map(([, index]) => index)
    .sort((a, b) => a - b);
}

/**
 * Return the chart. `scores` is the reply of the API, `words(sentence)` returns the text of a sentence, and the chart
 * calls `jump(sentence)` when the user goes to one.
 */
export function scoreChart(scores, query, words, jump) {
  const { sentences, headings = [], by } = scores;
  const rows = rowsOf(sentences);
  const mainRow = rows.at(-1);
  const tops = peaks(sentences.map((sentence) => sentence[mainRow]));
  const drawing = drawScores(sentences, rows, headings, by);
  const cursor = svg("rect", { class: "cursor", y: 0, width: 1, height: rows.length * ROW, visibility: "hidden" });
  drawing.append(cursor);
  const caption = el(
    "p",
    { class: "score-chart-caption quiet" },
    `${sentences.length} sentences, scored ${BY[by] ?? by ?? ""}. Click, or use the arrow keys, to go to one.`,
  );
  const bar = el(
    "div",
    {
      class: "score-chart-bar",
      role: "slider",
      tabindex: "0",
      "aria-orientation": "horizontal",
      "aria-label": "Score along the document",
      "aria-valuemin": 1,
      "aria-valuemax": sentences.length,
      "aria-valuenow": 1,
      "aria-valuetext": `${sentences.length} sentences; best at sentence ${best(sentences, mainRow) + 1}`,
    },
    drawing,
  );
  drawing.style.setProperty("--rows", rows.length);

  let current = -1;
  const scoresOf = (sentence) =>
    rows.map((name) => `${rows.length > 1 ? `${name} ` : ""}${sentence[name].toFixed(2)}`).join(", ");
  const describe = (index) =>
    `${index + 1} of ${sentences.length}: ${scoresOf(sentences[index])}${section(headings, sentences[index])}`;
  const point = (index) => {
    cursor.setAttribute("x", index);
    cursor.setAttribute("visibility", "visible");
    caption.replaceChildren(el("strong", {}, describe(index)), ` ${words(sentences[index])}`);
  };
  const goTo = (index) => {
    current = Math.max(0, Math.min(sentences.length - 1, index));
    point(current);
    bar.setAttribute("aria-valuenow", current + 1);
    bar.setAttribute("aria-valuetext", `Sentence ${describe(current)}. ${words(sentences[current])}`);
    jump(sentences[current]);
  };
  const sentenceAt = (event) => {
    const box = drawing.getBoundingClientRect();
    return Math.max(
      0,
      Math.min(sentences.length - 1, Math.floor(((event.clientX - box.left) / box.width) * sentences.length)),
    );
  };
  bar.addEventListener("pointermove", (event) => point(sentenceAt(event)));
  bar.addEventListener("pointerleave", () => current >= 0 && point(current));
  bar.addEventListener("click", (event) => goTo(sentenceAt(event)));
  bar.addEventListener("keydown", (event) => {
    const next = {
      ArrowRight: current + 1,
      ArrowUp: current + 1,
      ArrowLeft: current - 1,
      ArrowDown: current - 1,
      Home: 0,
      End: sentences.length - 1,
      PageDown: tops.find((top) => top > current),
      PageUp: tops.findLast((top) => top < current),
      Enter: best(sentences, mainRow),
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    goTo(next);
  });

  const names = el(
    "div",
    { class: "score-chart-names", "aria-hidden": "true" },
    ...rows.map((name) => el("span", {}, rows.length > 1 ? name : "score")),
  );
  const ruler = el("div", { class: "ruler", "aria-hidden": "true" });
  const observer = new ResizeObserver(() => label(ruler, headings, sentences));
  observer.observe(ruler);
  const element = el(
    "section",
    { class: "score-chart", "aria-label": `Where this report discusses ${query}` },
    el("h3", {}, "Where it discusses ", el("q", {}, query)),
    el("div", { class: "score-chart-grid" }, names, bar, ruler),
    caption,
  );
  new ResizeObserver(() => document.documentElement.style.setProperty("--score-chart", `${element.offsetHeight}px`)).observe(
    element,
  );
  return element;
}

const best = (sentences, name) =>
  sentences.reduce((top, sentence, index) => (sentence[name] > sentences[top][name] ? index : top), 0);

function section(headings, sentence) {
  const current = headings.findLast(({ begin }) => begin <= sentence.begin);
  return current ? `, ${last(current.heading)}.` : ".";
}

const last = (heading) => heading.split(" | ").at(-1).trim();

/** Return the headings with the index of the first sentence of each section. */
function starts(headings, sentences) {
  return headings
    .map(({ begin, heading }) => ({ index: sentences.findIndex(({ end }) => end > begin), heading: last(heading) }))
    .filter(({ index }) => index >= 0);
}

function drawScores(sentences, rows, headings, by) {
  const count = Math.max(1, sentences.length);
  const drawing = svg("svg", {
    viewBox: `0 0 ${count} ${rows.length * ROW}`,
    preserveAspectRatio: "none",
    "aria-hidden": "true",
  });
  starts(headings, sentences).forEach(({ index }, number, all) => {
    const end = all[number + 1]?.index ?? count;
    if (number % 2)
      drawing.append(svg("rect", { class: "band", x: index, y: 0, width: end - index, height: rows.length * ROW }));
  });
  const values = rows.flatMap((name) => sentences.map((sentence) => sentence[name]));
  const highest = Math.max(0.005, ...values);
  // Cosines of an encoder are all well above 0, so the lowest is the baseline; otherwise all would look the same.
  const lowest = by === "encoder" ? Math.min(highest - 0.01, ...values) : 0;
  rows.forEach((name, row) => {
    const ground = (row + 1) * ROW;
    const path = sentences.map((sentence, index) => {
      const height = Math.max(0, (sentence[name] - lowest) / (highest - lowest)) * (ROW - 3);
      return height > 0 ? `M${index + 0.06} ${ground}V${(ground - height).toFixed(2)}H${index + 0.94}V${ground}z` : "";
    });
    drawing.append(
      svg("path", { class: `row ${name}`, d: path.join("") }),
      svg("line", { class: "ground", x1: 0, x2: count, y1: ground, y2: ground }),
    );
  });
  return drawing;
}

/** Show the headings of sections under the chart where there is room. */
function label(ruler, headings, sentences) {
  const width = ruler.clientWidth;
  const all = starts(headings, sentences);
  let free = 0;
  ruler.replaceChildren(
    ...all.flatMap(({ index, heading }, number) => {
      const left = (index / sentences.length) * width;
      const room = ((all[number + 1]?.index ?? sentences.length) / sentences.length) * width - left;
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
