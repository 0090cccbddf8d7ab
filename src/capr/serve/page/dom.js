// Elements, made without a line of HTML: whatever a note says ends up in text nodes.

const SVG = "http://www.w3.org/2000/svg";

/** An element: attributes by name, `class`, `on…` for listeners; children are elements or text. */
export function el(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** The same for a drawing. */
export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const byId = (id) => document.getElementById(id);

/** A button that does something. */
export function button(words, onclick, attributes = {}) {
  return el("button", { type: "button", onclick, ...attributes }, words);
}

/** `3 passages`, `1 passage`. */
export function counted(count, name, many = `${name}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? name : many}`;
}

/** Calls `action` once nothing has called it for so many milliseconds. */
export function debounced(action, milliseconds) {
  let waiting;
  return (...given) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => action(...given), milliseconds);
  };
}

/** Brings something into view, smoothly unless the reader asked for less motion. */
export function show(element, block = "center") {
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  element.scrollIntoView({ block, behavior: still ? "auto" : "smooth" });
}
