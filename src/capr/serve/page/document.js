// The view of one report: text, outline, mentions, scores for the query, and a question box.

import { Latest, documentPath, get, post } from "./api.js";
import { askBox } from "./ask.js";
import { citation, copy } from "./citation.js";
import { button, byId, el, scrollTo as scrollToElement } from "./dom.js";
import { facts } from "./hit.js";
import { mentionLists } from "./mention_lists.js";
import { mark, mentions, range } from "./marks.js";
import { failure, say, skeleton, toast } from "./notices.js";
import { Text } from "./offsets.js";
import { follow, outline } from "./outline.js";
import { current, go, hasQuery, noView, query, toFragment } from "./state.js";
import { scoreChart } from "./score_chart.js";
import { makeOneTabStop } from "./tooltip.js";

const EVIDENCE = 5; // number of shaded sentences, those with the best scores

export const name = "document";
export const parameters = { single: ["document", "at", "ask"] }; // the id, the span of a passage, a question
export const matches = (state) => Boolean(state.document);
export const title = () => "Report";

const view = el("div", { id: name, hidden: true });
export { view as element };
const latest = new Latest();
let open = null; // the report in the view

/** Show the document that the address names. */
export async function show(state) {
  byId("page").classList.add("reading");
  const key = toFragment({ ...state, at: "", ask: "", k: "", group: "" });
  if (open?.key === key) return open.update(state);
  open = null;
  view.setAttribute("aria-busy", "true");
  view.replaceChildren(el("p", {}, backLink(state)), skeleton(1));
  try {
    const document = await latest.run((signal) => get(documentPath(state.document), { signal }));
    if (!document) return undefined;
    open = { key, ...render(document, state) };
    open.update(state);
    view.querySelector("h2").focus({ preventScroll: true });
    say(`Opened ${document.title || document.id}.`);
    if (hasQuery(state)) score(open, state);
  } catch (problem) {
    if (problem.status === 404) problem.fix ||= "Check the address, or go back to the results and search again.";
    view.replaceChildren(
      el("p", {}, backLink(state)),
      failure(problem, () => show(current())),
    );
  }
  view.removeAttribute("aria-busy");
  return undefined;
}

/** Empty the view, so that it loads again. */
export function forget() {
  latest.stop();
  open = null;
  view.replaceChildren();
}

export function hide() {
  forget();
  byId("page").classList.remove("reading");
}

/** Add the scores of the sentences. They come after the text, because those of a long report take time. */
async function score(report, state) {
  const body = query(state);
  try {
    const scores = await latest.run((signal) => post(documentPath(state.document, "/scores"), body, { signal }));
    if (scores) report.scored(scores);
  } catch (problem) {
    report.unscored(problem);
  }
}

const backLink = (state) =>
  el(
    "a",
    { class: "back", href: "#" + toFragment({ ...state, ...noView() }) },
    hasQuery(state) ? "← Back to the results" : "← Back",
  );

function render(document, state) {
  const text = new Text(document.text);
  const body = el("div", { class: "report", role: "region", "aria-label": "Text of the report", tabindex: "-1" });
  const marks = { answers: [], target: target(state), scores: [] };
  const draw = () => drawText(body, text, document, marks);
  const jumpTo = (span) => flash(body, span.begin);
  const questionBox = askBox({
    submit: (question) => go({ ask: question }),
    show: (answers, answered) => {
      marks.answers = answers.map((answer, rank) => ({ ...answer, sure: answered && rank === 0 }));
      draw();
      if (answered && isBeside()) jumpTo(answers[0]);
    },
    jump: jumpTo,
  });
  const contents = outline(document.sections, (section) => jumpTo(section));
  const chartArea = el("div", { class: hasQuery(state) ? "score-chart waiting" : "score-chart-none", "aria-hidden": "true" });
  view.replaceChildren(
    el(
      "header",
      { class: "document-head" },
      backLink(state),
      el("h2", { tabindex: "-1" }, document.title || document.id),
      el(
        "div",
        { class: "row" },
        facts(document.metadata, null, document.id),
        button("Copy citation", () => copyCitation(document, text), { class: "small" }),
      ),
    ),
    chartArea,
    el(
      "div",
      { class: "columns" },
      el(
        "aside",
        { class: "side", "aria-label": "Ask and mentions" },
        questionBox.element,
        mentionLists(document.mentions, (mention) => jumpToMention(body, mention)),
      ),
      el("div", { class: "contents" }, ...(contents ? [contents] : [])),
      body,
    ),
  );
  draw();
  if (contents) follow(body, contents);
  let [question, at] = ["", ""];
  const update = (next) => {
    if (next.ask !== question) questionBox.ask((question = next.ask), document.id);
    if (next.at !== at) {
      at = next.at;
      marks.target = target(next);
      draw();
      if (marks.target) lightUp(body.querySelector(".target"));
      else scrollTo(0, 0);
    }
  };
  const scored = (scores) => {
    if (!scores.sentences.length) return chartArea.remove();
    const queryText = state.q || [state.entity, state.aspect].filter(Boolean).join(", ");
    const words = (sentence) => text.slice(sentence.begin, sentence.end).replace(/\s+/g, " ");
    chartArea.replaceWith(scoreChart(scores, queryText, words, jumpTo));
    marks.scores = scores.sentences;
    return shade(body, best(marks.scores)) || draw(); // shading keeps a selection that the user has made; drawing does not
  };
  const unscored = (problem) =>
    chartArea.replaceWith(
      el("p", { class: "notice" }, `No score along the report: ${problem.message}. ${problem.fix ?? ""}`),
    );
  return { update, scored, unscored };
}

/** Whether answers are beside the text. If they are above it, scrolling to the text would hide them. */
const isBeside = () => matchMedia("(min-width: 56.26rem)").matches;

/** Return the span of the passage that the address names. */
function target({ at }) {
  const [begin, end] = at.split("-").map(Number);
  return end > begin ? { begin, end } : null;
}

function drawText(body, text, document, marks) {
  const begins = [...new Set([0, ...document.sections.map((section) => section.begin)])].sort((a, b) => a - b);
  const headings = document.sections.map((section) => headingMark(text, section)).filter(Boolean);
  const shaded = new Set(best(marks.scores).map((sentence) => sentence.begin));
  const spans = marks.scores.length ? marks.scores : document.sentences.map(([begin, end]) => ({ begin, end }));
  const layers = [
    marks.target ? [range(marks.target.begin, marks.target.end, { class: "target" })] : [],
    spans.map(({ begin, end }) =>
      range(begin, end, {
        class: shaded.has(begin) ? "sentence evidence" : "sentence",
        "data-begin": begin,
      }),
    ),
    marks.answers.map(({ begin, end, sure }) =>
      range(
        begin,
        end,
        { class: sure ? "answer-mark sure" : "answer-mark", "data-answer": begin },
        "mark",
      ),
    ),
    headings,
    mentions(document.mentions),
  ];
  body.replaceChildren(
    ...begins.map((begin, index) => {
      const end = begins[index + 1] ?? text.end;
      const block = el("div", { class: "section", "data-section": begin });
      const visible = layers.map((layer) => layer.filter((span) => span.begin < end && span.end > begin));
      mark(block, text, visible, begin, end);
      return block;
    }),
  );
  makeOneTabStop(body);
}

const best = (sentences) =>
  [...sentences]
    .sort((a, b) => b.both - a.both)
    .slice(0, EVIDENCE)
    .filter((sentence) => sentence.both > 0);

/** Shade sentences, and return whether all were found: a model may split sentences differently. */
function shade(body, sentences) {
  const elements = sentences.map(({ begin }) => [...body.querySelectorAll(`.sentence[data-begin="${begin}"]`)]);
  for (const part of elements.flat()) part.classList.add("evidence");
  return elements.every((parts) => parts.length);
}

/** Return the mark of the heading of a section, or null if the text does not contain the heading. */
function headingMark(text, section) {
  const heading = (section.heading ?? "").split(" | ").at(-1).trim();
  const start = text.unit(section.begin);
  const index = heading ? text.text.slice(start, start + heading.length + 12).indexOf(heading) : -1;
  if (index < 0) return null;
  return range(text.offset(start + index), text.offset(start + index + heading.length), { class: "heading" }, "strong");
}

/** Scroll to the answer, sentence or section at an offset, and light it up. */
function flash(body, begin) {
  const isBefore = (name) => (element) => Number(element.dataset[name]) <= begin;
  const section = [...body.children].findLast(isBefore("section"));
  const sentence = [...(section?.querySelectorAll(".sentence") ?? [])].findLast(isBefore("begin"));
  lightUp(body.querySelector(`[data-answer="${begin}"]`) ?? sentence ?? section);
}

function jumpToMention(body, mention) {
  const element = body.querySelector(`.mention[data-begin="${mention.begin}"]`);
  lightUp(element);
  if (element?.getAttribute("role") === "button") element.focus({ preventScroll: true });
}

/** Scroll to an element, and light it up for a moment. */
function lightUp(element) {
  if (!element) return;
  scrollToElement(element);
  for (const lit of view.querySelectorAll(".flash")) lit.classList.remove("flash");
  void element.offsetWidth; // restarts the animation if it is the same element
  element.classList.add("flash");
}

async function copyCitation(document, text) {
  const span = target(current()) ?? { begin: 0, end: text.end };
  const done = await copy(citation({ ...document, document: document.id, ...span }));
  toast(done ? "Copied the citation." : "The browser refused to copy.");
}
