// Messages: for screen readers, as toasts, and in place of results.

import { button, byId, counted, el } from "./dom.js";

const TOAST = 4000; // milliseconds that a toast is visible

/** Announce a message to screen readers. */
export function say(words) {
  byId("live").textContent = words;
}

let timer;

/** Show a message for a moment. */
export function toast(words) {
  const box = byId("toast");
  clearTimeout(timer);
  box.hidden = false;
  box.textContent = words;
  timer = setTimeout(() => (box.hidden = true), TOAST);
}

/** Return an element that shows a problem and its fix, and a button to try again. */
export function failure(problem, again) {
  const wait = problem.wait ? ` Wait ${counted(problem.wait, "second")} before you try again.` : "";
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

/** Return grey lines in place of results that are still loading. */
export function skeleton(count = 3) {
  const lines = () => [el("i"), el("i"), el("i"), el("i")];
  return el(
    "div",
    { class: "skeleton", "aria-hidden": "true" },
    ...Array.from({ length: count }, () => el("div", { class: "card" }, ...lines())),
  );
}
