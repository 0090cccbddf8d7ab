// Functions that create elements. They use no HTML, so the contents of notes always become text nodes.

const SVG = "http://www.w3.org/2000/svg";

/** Create an element: attributes by name, `on…` for listeners; children are elements or text. */
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** Create an SVG element. */
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const byId = (id) => document.getElementById(id);

/** Create a button. */
export function button(words, onclick, attributes = {}) {
  return el("button", { type: "button", onclick, ...attributes }, words);
}

/** Return a count with its noun: `3 passages`, `1 passage`. */
export function counted(count, name, many = `${name}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? name : many}`;
}

/** Return a function that calls `action` after so many milliseconds without another call. */
export function debounced(action, milliseconds) {
  let timer;
  return (...parameters) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...parameters), milliseconds);
  };
}

/** Scroll to an element, smoothly unless the system asks for reduced motion. */
export function scrollTo(element, block = "center") {
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  element.scrollIntoView({ block, behavior: still ? "auto" : "smooth" });
}
