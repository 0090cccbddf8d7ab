// What the page has to say: to a screen reader, for a moment, or where results would stand.

import { button, byId, counted, el } from "./dom.js";

const TOAST = 4000; // milliseconds

/** Says something to those who do not see it. */
export function say(words) {
  byId("live").textContent = words;
}

let closing;

/** Says something to everybody, for a moment. */
export function toast(words) {
  const box = byId("toast");
  clearTimeout(closing);
  box.hidden = false;
  box.textContent = words;
  closing = setTimeout(() => (box.hidden = true), TOAST);
}

/** What went wrong, and what to do. */
export function failure(problem, again) {
  const wait = problem.wait ? ` The server asks to wait ${counted(problem.wait, "second")}.` : "";
  const fact = problem.fact && problem.fact !== problem.title ? problem.fact : "";
  return el(
    "div",
    { class: "state error", role: "alert" },
    el("h2", {}, problem.title ?? "Something went wrong on this page"),
    el("p", {}, fact || (problem instanceof TypeError ? String(problem) : ""), wait),
    problem.fix && el("p", {}, el("strong", {}, "What to do: "), problem.fix),
    again && button("Try again", again, { class: "main" }),
  );
}

/** Grey lines where results will stand. */
export function skeleton(count = 3) {
  const lines = () => [el("i"), el("i"), el("i"), el("i")];
  return el(
    "div",
    { class: "skeleton", "aria-hidden": "true" },
    ...Array.from({ length: count }, () => el("div", { class: "card" }, ...lines())),
  );
}
