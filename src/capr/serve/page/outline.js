// The outline of a document: its headings as buttons that lead to the sections.

import { el } from "./dom.js";

/** Return a list of buttons that call `jump(section)`, or null without headings. */
export function outline(sections, jump) {
  const withHeading = sections.filter((section) => section.heading);
  if (!withHeading.length) return null;
  const depth = (section) => section.level ?? section.heading.split(" | ").length;
  const minDepth = Math.min(...withHeading.map(depth));
  return el(
    "details",
    { class: "outline", open: matchMedia("(min-width: 75.01rem)").matches },
    el("summary", {}, "Outline"),
    el(
      "nav",
      { "aria-label": "Outline of the report" },
      el(
        "ul",
        { class: "plain" },
        ...withHeading.map((section) =>
          el(
            "li",
            { class: `level-${Math.min(3, depth(section) - minDepth)}` },
            el(
              "button",
              { type: "button", "data-begin": section.begin, onclick: () => jump(section) },
              short(section.heading),
            ),
          ),
        ),
      ),
    ),
  );
}

const short = (heading) => heading.split(" | ").at(-1).trim();

/** Scroll the outline alone, so that a button is visible. */
function keepInView(button, box) {
  const [inner, outer] = [button.getBoundingClientRect(), box.getBoundingClientRect()];
  if (inner.top < outer.top) box.scrollTop -= outer.top - inner.top + 8;
  if (inner.bottom > outer.bottom) box.scrollTop += inner.bottom - outer.bottom + 8;
}

/** Mark the button of the section at an offset, and no other. */
function markCurrent(nav, begin) {
  for (const button of nav.querySelectorAll("button")) {
    const isCurrent = Number(button.dataset.begin) === begin;
    if (isCurrent) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
    if (isCurrent) keepInView(button, nav.parentElement);
  }
}

/** Mark the section in the middle of the window. The sections are the children of `body`. */
export function follow(body, contents) {
  const visible = new Set();
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) visible.add(target);
        else visible.delete(target);
      }
      const last = [...body.children].findLast((element) => visible.has(element));
      if (last) markCurrent(contents, Number(last.dataset.section));
    },
    { rootMargin: "-42% 0px -50% 0px" },
  );
  const observe = () => [...body.children].forEach((element) => observer.observe(element));
  new MutationObserver(() => {
    observer.disconnect();
    visible.clear();
    observe();
  }).observe(body, { childList: true });
  observe();
}
