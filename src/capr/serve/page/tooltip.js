// The tooltip of a mention: its concept and the reasons for its context, on hover, focus and tap.

import { byId, el } from "./dom.js";
import { FLAGS, reason } from "./marks.js";

const tip = byId("tip");
let shownElement = null;

/** Make the mentions of a text one Tab stop. The arrow keys go from one mention to the next. */
export function makeOneTabStop(container) {
  const findMarks = () => [...container.querySelectorAll(".mention[role=button]")];
  const first = findMarks()[0];
  if (first) first.tabIndex = 0;
  container.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const marks = findMarks();
    const index = marks.indexOf(event.target);
    if (!step || index < 0) return;
    const next = marks[index + step];
    if (!next) return;
    event.preventDefault();
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}

/** Add the listeners of the page. */
export function start() {
  for (const name of ["mouseover", "focusin"]) document.addEventListener(name, (event) => showFor(event.target));
  document.addEventListener("click", (event) => showFor(event.target));
  document.addEventListener("focusout", hide);
  document.addEventListener("mouseout", (event) => {
    if (shownElement && !shownElement.contains(event.relatedTarget) && event.relatedTarget !== tip) hide();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    if ((event.key === "Enter" || event.key === " ") && event.target.mention) {
      event.preventDefault();
      showFor(event.target);
    }
  });
  addEventListener("scroll", hide, { passive: true, capture: true });
}

function showFor(target) {
  const element = target instanceof Element ? target.closest(".mention") : null;
  if (!element?.mention || element === shownElement) return;
  shownElement = element;
  tip.replaceChildren(...lines(element.mention));
  tip.hidden = false;
  const box = element.getClientRects()[0] ?? element.getBoundingClientRect();
  const left = Math.max(8, Math.min(box.left, innerWidth - tip.offsetWidth - 8));
  const below = box.bottom + 6 + tip.offsetHeight < innerHeight;
  tip.style.setProperty("left", `${left}px`);
  tip.style.setProperty("top", `${below ? box.bottom + 6 : box.top - tip.offsetHeight - 6}px`);
}

function hide() {
  shownElement = null;
  tip.hidden = true;
}

function lines(mention) {
  const concept = mention.concept;
  const about = concept ? `${mention.kind}: ${concept.name} (${concept.code})` : mention.kind;
  const flags = FLAGS.filter((flag) => mention[flag]);
  return [el("p", {}, about), ...flags.map((flag) => el("p", { class: `reason ${flag}` }, reason(mention, flag)))];
}
