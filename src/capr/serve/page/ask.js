// A question about one report: the words that answer it with their location, or that the report has no answer.

import { Latest, post } from "./api.js";
import { button, el } from "./dom.js";
import { FLAGS, mark, range } from "./marks.js";
import { failure, say } from "./notices.js";
import { Text } from "./offsets.js";
import { has } from "./account.js";

const NO_READER =
  "This server has no model that reads answers. Its administrator can add one.";
const CONTEXTS = { family: "of a relative", historical: "in the past" };

/**
 * Return the question box. It calls `submit(question)` when the user asks, `show(answers, answered)` with the answers
 * to mark in the text, and `jump(answer)` to show one of them.
 */
export function askBox({ submit, show, jump }) {
  const input = el("input", {
    id: "ask",
    maxlength: 1000,
    placeholder: "What dose was she discharged on?",
    autocomplete: "off",
  });
  const out = el("div", { class: "answers", "aria-live": "polite" });
  const latest = new Latest();
  const form = el(
    "form",
    { class: "ask-form" },
    el("label", { for: "ask" }, "Ask this report"),
    el(
      "div",
      { class: "row" },
      el("span", { class: "grow" }, input),
      el("button", { type: "submit", class: "main" }, "Ask"),
    ),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (input.value.trim()) submit(input.value.trim());
  });

  has("ask").then((hasReader) => {
    if (!hasReader && !out.childElementCount) out.replaceChildren(el("p", { class: "quiet" }, NO_READER));
  });

  const ask = async (question, document) => {
    input.value = question;
    show([], false);
    if (!question) {
      latest.stop();
      return out.replaceChildren();
    }
    out.replaceChildren(el("p", { class: "quiet" }, "Reading the report ..."));
    try {
      const results = await latest.run((signal) => post("api/ask", { question, document, k: 4 }, { signal }));
      if (!results) return undefined;
      out.replaceChildren(...render(results, jump));
      show(results.answers.filter((answer) => answer.confidence >= MIN_CONFIDENCE), results.answered);
      say(results.answered ? `Answer: ${results.answers[0].text}` : "Not in this report.");
    } catch (problem) {
      out.replaceChildren(
        failure(problem, problem.status === 503 && !problem.wait ? null : () => ask(question, document)),
      );
    }
    return undefined;
  };
  return { element: el("section", { class: "ask", "aria-label": "Question and answer" }, form, out), ask };
}

const MIN_CONFIDENCE = 0.1; // of the answers shown; answers with less are hardly ever right

function render(results, jump) {
  const { answered, threshold, answers, notices = [] } = results;
  const sure = answers.filter((answer) => answered && answer.confidence >= threshold);
  const rest = answers.filter((answer) => !sure.includes(answer) && answer.confidence >= MIN_CONFIDENCE);
  const lines = notices.map((notice) => el("p", { class: "notice" }, notice));
  if (!answered) {
    return [
      el(
        "div",
        { class: "refusal" },
        el("h3", {}, "Not in this report"),
        el(
          "p",
          {},
          `No answer reaches the threshold of ${percent(threshold)}. `,
          "The report may still contain the answer in words that the model does not understand.",
        ),
      ),
      ...(rest.length ? [el("h4", {}, "Best guess, not an answer"), answerCard(rest[0], jump, "guess")] : []),
      ...lines,
      footer(results),
    ];
  }
  return [
    answerCard(sure[0], jump, "answer"),
    ...(sure.length > 1
      ? [el("h4", {}, "Other answers"), ...sure.slice(1).map((answer) => answerCard(answer, jump, "next"))]
      : []),
    ...(rest.length ? [el("h4", {}, "Less likely"), ...rest.map((answer) => answerCard(answer, jump, "less"))] : []),
    ...lines,
    footer(results),
  ];
}

const percent = (share) => `${Math.round(share * 100)}%`;

function footer({ reader, passages, took }) {
  return el(
    "p",
    { class: "quiet" },
    `Read by ${reader}: ${passages} passages in ${took} s. Check an answer in its sentence before you act on it.`,
  );
}

function answerCard(answer, jump, kind) {
  const meter = el("meter", { min: 0, max: 1, value: answer.confidence, "aria-label": "Confidence" });
  const flags = FLAGS.filter((flag) => answer.context?.[flag]);
  const sentence = el("p", { class: "in-sentence" });
  const words = range(answer.begin, answer.end, { class: "answer-mark" }, "mark");
  mark(sentence, new Text(answer.sentence.text, answer.sentence.begin), [[words]]);
  return el(
    "article",
    { class: `answer-card ${kind}` },
    el("p", { class: "answer-text" }, answer.text),
    el("p", { class: "confidence" }, meter, `${percent(answer.confidence)} confidence`),
    flags.length
      ? el(
          "p",
          { class: "context" },
          ...flags.map((flag) => el("span", { class: `flag ${flag}` }, contextLabel(flag, answer.context[flag]))),
        )
      : null,
    sentence,
    el("p", { class: "quiet" }, (answer.headings ?? []).join(" › ")),
    button("Show in the report", () => jump(answer)),
    ...(answer.places?.length
      ? [
          el("p", { class: "quiet" }, "Also found here:"),
          el(
            "ul",
            { class: "plain" },
            ...answer.places.map((location) =>
              el(
                "li",
                {},
                button(
                  locationLabel(location),
                  () => jump(location),
                  { class: "link" },
                ),
              ),
            ),
          ),
        ]
      : []),
  );
}

const locationLabel = ({ text, confidence, headings = [] }) =>
  `${text.replace(/\s+/g, " ")} (${percent(confidence)}) ${headings.at(-1) ?? ""}`;

const contextLabel = (flag, cue) => `${CONTEXTS[flag] ?? flag}${cue?.text ? `: “${cue.text}”` : ""}`;
