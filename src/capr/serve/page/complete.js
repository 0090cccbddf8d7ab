// A text field that completes what is typed: the combobox of the ARIA authoring practices, with a list.

import { Latest } from "./api.js";
import { debounced, el } from "./dom.js";

const PAUSE = 120; // milliseconds without a key, before the server is asked

/**
 * Makes a field complete.
 *
 * `fetch(typed, signal)` gives [{value, detail, kind}]. Enter or a click takes one; Escape closes the list.
 */
export function complete(input, label, fetch) {
  const list = el("ul", {
    id: `${input.id}-list`,
    role: "listbox",
    "aria-label": label,
    class: "completions",
    hidden: true,
  });
  input.after(list);
  for (const [name, value] of Object.entries({
    role: "combobox",
    autocomplete: "off",
    "aria-autocomplete": "list",
    "aria-expanded": "false",
    "aria-controls": list.id,
  }))
    input.setAttribute(name, value);

  const latest = new Latest();
  let found = [];
  let active = -1;

  const close = () => {
    latest.stop();
    found = [];
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    choose(-1);
  };

  const choose = (at) => {
    list.children[active]?.setAttribute("aria-selected", "false");
    active = at;
    const option = list.children[active];
    if (!option) return input.removeAttribute("aria-activedescendant");
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    return input.setAttribute("aria-activedescendant", option.id);
  };

  const take = (at) => {
    input.value = found[at].value;
    input.dispatchEvent(new Event("change", { bubbles: true }));
    close();
  };

  const open = (options) => {
    found = options;
    list.replaceChildren(...options.map((option, at) => line(option, at, input.id, () => take(at))));
    list.hidden = !options.length;
    input.setAttribute("aria-expanded", String(options.length > 0));
    choose(-1);
  };

  const ask = async () => {
    const typed = input.value.trim();
    try {
      const options = await latest.run((signal) => fetch(typed, signal));
      if (options && document.activeElement === input) open(options);
    } catch {
      close(); // completion is a help: the search itself says what is wrong
    }
  };

  const soon = debounced(ask, PAUSE);
  input.addEventListener("input", soon);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && list.hidden) {
      event.preventDefault();
      return void ask();
    }
    if (list.hidden || event.isComposing) return;
    const last = found.length - 1;
    const at = { ArrowDown: active === last ? 0 : active + 1, ArrowUp: active <= 0 ? last : active - 1 }[event.key];
    if (at !== undefined) {
      event.preventDefault();
      choose(at);
    } else if (event.key === "Enter" && active >= 0) {
      event.preventDefault();
      take(active);
    } else if (event.key === "Escape") {
      event.preventDefault();
      close();
    } else if (event.key === "Tab" && active >= 0) take(active);
  });
  return { close };
}

function line({ value, detail, kind }, at, id, onclick) {
  return el(
    "li",
    {
      role: "option",
      id: `${id}-option-${at}`,
      "aria-selected": "false",
      onclick,
      onmousedown: (event) => event.preventDefault(),
    },
    el("span", { class: "value" }, value),
    kind && el("span", { class: `kind-name ${kind}` }, kind),
    detail && el("span", { class: "detail" }, detail),
  );
}
