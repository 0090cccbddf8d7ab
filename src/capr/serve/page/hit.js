// One hit: its passage, its document, and why it has this rank.

import { documentPath, get, post } from "./api.js";
import { citation, copy } from "./citation.js";
import { button, counted, el, svg } from "./dom.js";
import { evidence, mark, mentions, words } from "./marks.js";
import { toast } from "./notices.js";
import { Text } from "./offsets.js";
import { current, go, noView, query, toFragment } from "./state.js";
import { makeOneTabStop } from "./tooltip.js";

const STAGES = {
  lexical: ["Words", "BM25 over text, headings, entities and aspects"],
  dense: ["Meaning", "similarity of query and passage, by the encoder"],
  cdv: ["Sentences", "similarity of query and sentences, by the discourse model"],
  fusion: ["Fusion", "words and meaning combined, 0 to 1"],
  late: ["Word pieces", "similarity of the pieces of query and passage, by the encoder"],
  rerank: ["Ranker", "query and passage, read together by the ranker"],
};
const THUMB =
  "M1.5 8.5h3v8h-3z M6 8.5 9.4 2c1.5 0 2.3 1 2 2.4L10.7 7.5h4.6c1.2 0 1.9 1 1.7 2.1l-1.2 5.4c-.2.9-.9 1.5-1.8 1.5H6z";

/** Return the card of a hit. It contains further hits of its group, folded. */
export function card(hit, rank, state) {
  const id = `hit-${rank}`;
  const before = el("div", { class: "around before" });
  const after = el("div", { class: "around after" });
  return el(
    "article",
    { class: "card hit", "aria-labelledby": `${id}-title`, "data-document": hit.document },
    el(
      "header",
      {},
      el("span", { class: "rank", "aria-hidden": "true" }, String(rank).replace(/^.*-/, "")),
      el(
        "div",
        { class: "grow" },
        el("h3", { id: `${id}-title` }, el("a", { href: address(hit, state) }, hit.title || hit.document)),
        facts(hit.metadata, hit.headings, hit.document),
      ),
    ),
    before,
    passage(hit),
    after,
    tools(hit, before, after),
    why(hit),
    hit.others?.length ? others(hit, rank, state) : null,
  );
}

/** Return the address of the document view at a passage. */
export function address(hit, state) {
  return "#" + toFragment({ ...state, ...noView(), document: hit.document, at: `${hit.begin}-${hit.end}` });
}

/** Return patient, date, type and heading path. A click on the patient filters by it. */
export function facts(metadata, headings, document) {
  const { patient, date, type } = metadata ?? {};
  const narrow = () => go({ patient: [String(patient)], k: "", ...noView() });
  return el(
    "p",
    { class: "facts" },
    patient
      ? button(String(patient), narrow, {
          class: "patient",
          title: "Only this patient",
          "aria-label": `Patient ${patient}. Show only this patient`,
        })
      : null,
    date && el("time", { datetime: String(date) }, String(date)),
    type && el("span", {}, String(type)),
    headings?.length ? el("span", { class: "path" }, headings.join(" › ")) : null,
    el("span", { class: "id" }, document),
  );
}

function passage(hit) {
  const text = new Text(hit.text, hit.begin);
  const body = el("div", { class: "passage" });
  mark(body, text, [evidence(hit.sentences), mentions(hit.mentions), words(hit.highlights)]);
  makeOneTabStop(body);
  return body;
}

function tools(hit, before, after) {
  return el(
    "div",
    { class: "tools" },
    ...aroundButtons(hit, before, after),
    button("Copy", () => copyPassage(hit), { "aria-label": "Copy the passage with its citation" }),
    ...thumbs(hit),
  );
}

async function copyPassage(hit) {
  const done = await copy(`${hit.text}\n\n${citation(hit)}`);
  toast(done ? "Copied, with its citation." : "The browser refused to copy. Select the text and copy it by hand.");
}

/** Return the buttons that show the previous and the next passage. */
function aroundButtons(hit, before, after) {
  if (hit.index === undefined) return [];
  const last = (hit.passages ?? Infinity) - 1;
  const make = (words, label, box, step) => {
    let index = hit.index;
    const update = () => (control.disabled = step < 0 ? index <= 0 : index >= last);
    const control = button(
      words,
      async () => {
        control.disabled = true;
        try {
          const next = await get(documentPath(hit.document, `/passages/${index + step}`));
          index += step;
          const block = neighbour(next);
          if (step < 0) box.prepend(block);
          else box.append(block);
          update();
        } catch (problem) {
          if (problem.status === 404)
            return toast(step < 0 ? "This is the first passage." : "This is the last passage.");
          toast(`${problem.title}. ${problem.fix}`);
          update();
        }
        return undefined;
      },
      { "aria-label": label },
    );
    update();
    return control;
  };
  return [
    make("↑ Previous", "Show the previous passage", before, -1),
    make("↓ Next", "Show the next passage", after, 1),
  ];
}

function neighbour(passage) {
  const text = new Text(passage.text, passage.begin);
  const body = el("div", { class: "passage" });
  mark(body, text, [mentions(passage.mentions ?? [])]);
  makeOneTabStop(body);
  const heading = passage.headings?.length ? el("p", { class: "path" }, passage.headings.join(" › ")) : null;
  return el("div", { class: "neighbour" }, heading, body);
}

/** Return the two buttons to judge whether the passage answers the query. Judgements can train a model. */
function thumbs(hit) {
  const buttons = [true, false].map((answers) => {
    const words = answers ? "This passage answers" : "This passage does not answer";
    const drawing = svg("svg", { viewBox: "0 0 18 18", "aria-hidden": "true" }, svg("path", { d: THUMB }));
    const attributes = {
      class: answers ? "thumb" : "thumb down",
      "aria-pressed": String(hit.judged === answers),
      "aria-label": words,
      title: words,
    };
    return button(drawing, () => judge(answers), attributes);
  });
  let judgement = hit.judged ?? null;
  const judge = async (clicked) => {
    const answers = clicked === judgement ? null : clicked; // the same button again withdraws the judgement
    const passage = { document: hit.document, begin: hit.begin, end: hit.end };
    try {
      await post("api/feedback", { ...query(current()), ...passage, answers });
      judgement = answers;
      buttons[0].setAttribute("aria-pressed", String(answers === true));
      buttons[1].setAttribute("aria-pressed", String(answers === false));
      toast(
        { true: "Saved: this passage answers.", false: "Saved: this passage does not answer." }[answers] ?? "Withdrawn.",
      );
    } catch (problem) {
      toast(`Not saved: ${problem.title}. ${problem.fix ?? ""}`);
    }
  };
  return buttons;
}

function why(hit) {
  const rows = Object.entries(hit.stages).map(([name, stage]) => {
    const [words, meaning] = STAGES[name] ?? [name, ""];
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, words),
      el("td", {}, `rank ${stage.rank}`),
      el("td", {}, stage.score.toFixed(2)),
      el("td", {}, meaning),
    );
  });
  const evidenceCount = hit.sentences.length ? `${counted(hit.sentences.length, "sentence")} marked as evidence. ` : "";
  return el(
    "details",
    { class: "why" },
    el("summary", {}, "Why this rank"),
    el(
      "table",
      {},
      el(
        "thead",
        {},
        el("tr", {}, ...["Stage", "Rank", "Score", "What it scores"].map((name) => el("th", { scope: "col" }, name))),
      ),
      el("tbody", {}, ...rows),
    ),
    el(
      "p",
      { class: "quiet" },
      evidenceCount,
      hit.aspect ? `Aspect of the section: ${hit.aspect}. ` : "",
      `Final score ${hit.score.toFixed(2)}.`,
    ),
  );
}

function others(hit, rank, state) {
  return el(
    "details",
    { class: "others" },
    el("summary", {}, `${counted(hit.others.length, "further passage")} of ${hit.group}`),
    ...hit.others.map((other, index) => card(other, `${rank}-${index + 2}`, state)),
  );
}
