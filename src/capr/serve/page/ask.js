// A question to one report: the exact words that answer, where they stand, or that it does not say.

import { Latest, post } from "./api.js";
import { button, el } from "./dom.js";
import { FLAGS, mark, range } from "./marks.js";
import { failure, say } from "./notices.js";
import { Text } from "./offsets.js";
import { has } from "./who.js";

const NO_READER =
  "This server has no reader of answers, so that nothing can be asked yet. Whoever runs it can add one.";
const NAMES = { family: "of a relative", historical: "in the past" };

/**
 * The box. `submit(question)` is called when somebody asks; `answered(answers, found)` with what is to be marked in the
 * text; `jump(answer)` goes there.
 */
export function askBox({ submit, answered, jump }) {
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

  has("ask").then((can) => {
    if (!can && !out.childElementCount) out.replaceChildren(el("p", { class: "quiet" }, NO_READER));
  });

  const ask = async (question, document) => {
    input.value = question;
    answered([], false);
    if (!question) {
      latest.stop();
      return out.replaceChildren();
    }
    out.replaceChildren(el("p", { class: "quiet" }, "Reading the report ..."));
    try {
      const given = await latest.run((signal) => post("api/ask", { question, document, top: 4 }, { signal }));
      if (!given) return undefined;
      out.replaceChildren(...render(given, jump));
      answered(given.answers.filter((answer) => answer.confidence >= LEAST), given.found);
      say(given.found ? `Answer: ${given.answers[0].text}` : "Not in this report.");
    } catch (problem) {
      out.replaceChildren(
        failure(problem, problem.status === 503 && !problem.wait ? null : () => ask(question, document)),
      );
    }
    return undefined;
  };
  return { element: el("section", { class: "ask", "aria-label": "Question and answer" }, form, out), ask };
}

const LEAST = 0.1; // confidence of answers below the threshold that are shown; of less sure ones hardly any is right

function render(given, jump) {
  const { found, threshold, answers, notices = [] } = given;
  const sure = answers.filter((answer) => found && answer.confidence >= threshold);
  const rest = answers.filter((answer) => !sure.includes(answer) && answer.confidence >= LEAST);
  const lines = notices.map((notice) => el("p", { class: "notice" }, notice));
  if (!found) {
    return [
      el(
        "div",
        { class: "refusal" },
        el("h3", {}, "Not in this report"),
        el(
          "p",
          {},
          `No answer reaches the threshold of ${percent(threshold)}. The report may still say it in words that were not understood.`,
        ),
      ),
      ...(rest.length ? [el("h4", {}, "Best guess, not an answer"), answerCard(rest[0], jump, "guess")] : []),
      ...lines,
      footer(given),
    ];
  }
  return [
    answerCard(sure[0], jump, "answer"),
    ...(sure.length > 1
      ? [el("h4", {}, "Other answers"), ...sure.slice(1).map((one) => answerCard(one, jump, "next"))]
      : []),
    ...(rest.length ? [el("h4", {}, "Less likely"), ...rest.map((one) => answerCard(one, jump, "less"))] : []),
    ...lines,
    footer(given),
  ];
}

const percent = (share) => `${Math.round(share * 100)}\u00a0%`;

function footer({ reader, paragraphs, took }) {
  return el(
    "p",
    { class: "quiet" },
    `Read by ${reader}: ${paragraphs} paragraphs in ${took} s. Check an answer in its sentence before you act on it.`,
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
    el("p", { class: "confidence" }, meter, `${percent(answer.confidence)} sure`),
    flags.length
      ? el(
          "p",
          { class: "context" },
          ...flags.map((flag) => el("span", { class: `flag ${flag}` }, saying(flag, answer.context[flag]))),
        )
      : null,
    sentence,
    el("p", { class: "quiet" }, (answer.headings ?? []).join(" › ")),
    button("Show in the report", () => jump(answer)),
    ...(answer.places?.length
      ? [
          el("p", { class: "quiet" }, "Also read here:"),
          el(
            "ul",
            { class: "plain" },
            ...answer.places.map((place) =>
              el(
                "li",
                {},
                button(
                  `${place.text.replace(/\s+/g, " ")} (${percent(place.confidence)}) ${(place.headings ?? []).at(-1) ?? ""}`,
                  () => jump(place),
                  { class: "link" },
                ),
              ),
            ),
          ),
        ]
      : []),
  );
}

const saying = (flag, cue) => `${NAMES[flag] ?? flag}${cue?.text ? `: “${cue.text}”` : ""}`;
