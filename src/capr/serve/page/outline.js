// The headings of a document, as a way to its sections.

import { el } from "./dom.js";

/** A list of buttons; `jump(section)` is called with the one that is wanted. */
export function outline(sections, jump) {
  const named = sections.filter((section) => section.heading);
  if (!named.length) return null;
  const depth = (section) => section.level ?? section.heading.split(" | ").length;
  const least = Math.min(...named.map(depth));
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
        ...named.map((section) =>
          el(
            "li",
            { class: `level-${Math.min(3, depth(section) - least)}` },
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

/** Scrolls the outline, and nothing else. */
function keepInView(button, box) {
  const [inner, outer] = [button.getBoundingClientRect(), box.getBoundingClientRect()];
  if (inner.top < outer.top) box.scrollTop -= outer.top - inner.top + 8;
  if (inner.bottom > outer.bottom) box.scrollTop += inner.bottom - outer.bottom + 8;
}

/** Marks the section that is read, and no other. */
function current(nav, begin) {
  for (const button of nav.querySelectorAll("button")) {
    const read = Number(button.dataset.begin) === begin;
    if (read) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
    if (read) keepInView(button, nav.parentElement);
  }
}

/** Marks the section that is read, of a text whose sections are the children of `body`. */
export function follow(body, contents) {
  const seen = new Set();
  const watch = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) seen.add(target);
        else seen.delete(target);
      }
      const last = [...body.children].findLast((one) => seen.has(one));
      if (last) current(contents, Number(last.dataset.section));
    },
    { rootMargin: "-42% 0px -50% 0px" },
  );
  const observe = () => [...body.children].forEach((one) => watch.observe(one));
  new MutationObserver(() => {
    watch.disconnect();
    seen.clear();
    observe();
  }).observe(body, { childList: true });
  observe();
}
