// A text field with completions: the combobox with a listbox of the ARIA authoring practices.

import { Latest } from "./api.js";
import { debounced, el } from "./dom.js";

const PAUSE = 120; // milliseconds without a key before a request

/**
 * Add completions to a field.
 *
 * `fetch(prefix, signal)` resolves to [{value, detail, kind}]. Enter or a click takes one; Escape closes the list.
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
  let options = [];
  let active = -1;

  const close = () => {
    latest.stop();
    options = [];
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    activate(-1);
  };

  const activate = (index) => {
    list.children[active]?.setAttribute("aria-selected", "false");
    active = index;
    const option = list.children[active];
    if (!option) return input.removeAttribute("aria-activedescendant");
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    return input.setAttribute("aria-activedescendant", option.id);
  };

  const take = (index) => {
    input.value = options[index].value;
    input.dispatchEvent(new Event("change", { bubbles: true }));
    close();
  };

  const open = (completions) => {
    options = completions;
    list.replaceChildren(...options.map((option, index) => line(option, index, input.id, () => take(index))));
    list.hidden = !options.length;
    input.setAttribute("aria-expanded", String(options.length > 0));
    activate(-1);
  };

  const request = async () => {
    const prefix = input.value.trim();
    try {
      const completions = await latest.run((signal) => fetch(prefix, signal));
      if (completions && document.activeElement === input) open(completions);
    } catch {
      close(); // the search works without completions, and reports problems itself
    }
  };

  const requestSoon = debounced(request, PAUSE);
  input.addEventListener("input", requestSoon);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && list.hidden) {
      event.preventDefault();
      return void request();
    }
    if (list.hidden || event.isComposing) return;
    const last = options.length - 1;
    const next = { ArrowDown: active === last ? 0 : active + 1, ArrowUp: active <= 0 ? last : active - 1 }[event.key];
    if (next !== undefined) {
      event.preventDefault();
      activate(next);
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

function line({ value, detail, kind }, index, id, onclick) {
  return el(
    "li",
    {
      role: "option",
      id: `${id}-option-${index}`,
      "aria-selected": "false",
      onclick,
      onmousedown: (event) => event.preventDefault(),
    },
    el("span", { class: "value" }, value),
    kind && el("span", { class: `kind-name ${kind}` }, kind),
    detail && el("span", { class: "detail" }, detail),
  );
}
