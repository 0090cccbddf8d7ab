// One report: its text, outline, mentions, where it speaks of the query, and a box to ask it.

import { Latest, documentPath, get, post } from "./api.js";
import { askBox } from "./ask.js";
import { citation, copy } from "./citation.js";
import { button, byId, el, show as bring } from "./dom.js";
import { facts } from "./hit.js";
import { kinds } from "./kinds.js";
import { mark, mentions, range } from "./marks.js";
import { failure, say, skeleton, toast } from "./notices.js";
import { Text } from "./offsets.js";
import { follow, outline } from "./outline.js";
import { current, go, hasQuery, query, written } from "./state.js";
import { strip } from "./strip.js";
import { oneStop } from "./tip.js";

const EVIDENCE = 5; // sentences that are shaded, the best of the strip

const view = byId("document");
const latest = new Latest();
let open = null; // what is shown

/** Shows the document that the address names. */
export async function show(state) {
  const key = written({ ...state, at: "", ask: "", k: "", group: "" });
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

/** Forgets what is shown, so that it is loaded anew. */
export function close() {
  latest.stop();
  open = null;
  view.replaceChildren();
}

/** Adds the scores of the sentences: those of a long report take their time, and it can be read without them. */
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
    { class: "back", href: "#" + written({ ...state, document: "", at: "", ask: "" }) },
    hasQuery(state) ? "← Back to the results" : "← Back",
  );

function render(document, state) {
  const text = new Text(document.text);
  const body = el("div", { class: "report", role: "region", "aria-label": "Text of the report", tabindex: "-1" });
  const marks = { answers: [], target: target(state), scores: [] };
  const draw = () => drawText(body, text, document, marks);
  const toPlace = (place) => flash(body, place.begin);
  const asking = askBox({
    submit: (question) => go({ ask: question }),
    answered: (answers, found) => {
      marks.answers = answers.map((answer, rank) => ({ ...answer, sure: found && rank === 0 }));
      draw();
      if (found && beside()) toPlace(answers[0]);
    },
    jump: toPlace,
  });
  const contents = outline(document.sections, (section) => toPlace(section));
  const place = el("div", { class: hasQuery(state) ? "strip waiting" : "strip-none", "aria-hidden": "true" });
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
        button("Copy citation", () => cited(document, text), { class: "small" }),
      ),
    ),
    place,
    el(
      "div",
      { class: "columns" },
      el(
        "aside",
        { class: "side", "aria-label": "Ask and mentions" },
        asking.element,
        kinds(document.mentions, (mention) => toMention(body, mention)),
      ),
      el("div", { class: "contents" }, ...(contents ? [contents] : [])),
      body,
    ),
  );
  draw();
  if (contents) follow(body, contents);
  let [question, at] = ["", ""];
  const update = (next) => {
    if (next.ask !== question) asking.ask((question = next.ask), document.id);
    if (next.at !== at) {
      at = next.at;
      marks.target = target(next);
      draw();
      if (marks.target) lightUp(body.querySelector(".target"));
      else scrollTo(0, 0);
    }
  };
  const scored = (scores) => {
    if (!scores.sentences.length) return place.remove();
    const asked = state.q || [state.entity, state.aspect].filter(Boolean).join(", ");
    const words = (one) => text.slice(one.begin, one.end).replace(/\s+/g, " ");
    place.replaceWith(strip(scores, asked, words, toPlace));
    marks.scores = scores.sentences;
    return shade(body, best(marks.scores)) || draw(); // somebody may be reading or selecting already
  };
  const unscored = (problem) =>
    place.replaceWith(
      el("p", { class: "notice" }, `No score along the report: ${problem.message}. ${problem.fix ?? ""}`),
    );
  return { update, scored, unscored };
}

/** Whether answers stand beside the text; where they stand above it, going to the text would hide them. */
const beside = () => matchMedia("(min-width: 56.26rem)").matches;

/** The passage that the address names. */
function target({ at }) {
  const [begin, end] = at.split("-").map(Number);
  return end > begin ? { begin, end } : null;
}

function drawText(body, text, document, marks) {
  const begins = [...new Set([0, ...document.sections.map((section) => section.begin)])].sort((a, b) => a - b);
  const headings = document.sections.map((section) => headingMark(text, section)).filter(Boolean);
  const shaded = new Set(best(marks.scores).map((one) => one.begin));
  const spans = marks.scores.length ? marks.scores : document.sentences.map(([begin, end]) => ({ begin, end }));
  const layers = [
    marks.target ? [range(marks.target.begin, marks.target.end, { class: "target" })] : [],
    spans.map((one) =>
      range(one.begin, one.end, {
        class: shaded.has(one.begin) ? "sentence evidence" : "sentence",
        "data-begin": one.begin,
      }),
    ),
    marks.answers.map((one) =>
      range(
        one.begin,
        one.end,
        { class: one.sure ? "answer-mark sure" : "answer-mark", "data-answer": one.begin },
        "mark",
      ),
    ),
    headings,
    mentions(document.mentions),
  ];
  body.replaceChildren(
    ...begins.map((begin, at) => {
      const end = begins[at + 1] ?? text.end;
      const block = el("div", { class: "section", "data-section": begin });
      const here = layers.map((layer) => layer.filter((one) => one.begin < end && one.end > begin));
      mark(block, text, here, begin, end);
      return block;
    }),
  );
  oneStop(body);
}

const best = (sentences) =>
  [...sentences]
    .sort((a, b) => b.both - a.both)
    .slice(0, EVIDENCE)
    .filter((one) => one.both > 0);

/** Shades sentences that are there; gives whether all are, since a model may cut sentences in its own way. */
function shade(body, sentences) {
  const found = sentences.map((one) => [...body.querySelectorAll(`.sentence[data-begin="${one.begin}"]`)]);
  for (const part of found.flat()) part.classList.add("evidence");
  return found.every((parts) => parts.length);
}

/** A heading where it stands in the text, if it does. */
function headingMark(text, section) {
  const heading = (section.heading ?? "").split(" | ").at(-1).trim();
  const start = text.unit(section.begin);
  const found = heading ? text.text.slice(start, start + heading.length + 12).indexOf(heading) : -1;
  if (found < 0) return null;
  return range(text.place(start + found), text.place(start + found + heading.length), { class: "heading" }, "strong");
}

/** Goes to the answer, the sentence or the section at a place of the text. */
function flash(body, begin) {
  const before = (name) => (one) => Number(one.dataset[name]) <= begin;
  const section = [...body.children].findLast(before("section"));
  const sentence = [...(section?.querySelectorAll(".sentence") ?? [])].findLast(before("begin"));
  lightUp(body.querySelector(`[data-answer="${begin}"]`) ?? sentence ?? section);
}

function toMention(body, mention) {
  const element = body.querySelector(`.mention[data-begin="${mention.begin}"]`);
  lightUp(element);
  if (element?.getAttribute("role") === "button") element.focus({ preventScroll: true });
}

/** Brings something into view, and shows for a moment where it is. */
function lightUp(element) {
  if (!element) return;
  bring(element);
  for (const lit of view.querySelectorAll(".flash")) lit.classList.remove("flash");
  void element.offsetWidth; // so that the same place lights up again
  element.classList.add("flash");
}

async function cited(document, text) {
  const place = target(current()) ?? { begin: 0, end: text.end };
  const done = await copy(citation({ ...document, document: document.id, ...place }));
  toast(done ? "Copied the citation." : "The browser refused to copy.");
}
