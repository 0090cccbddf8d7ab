// Saved searches, which the server stores by name.

import { get, post, remove } from "./api.js";
import { byId, el } from "./dom.js";
import { toast } from "./notices.js";
import { current, hasFilters, hasQuery, noView, toFragment } from "./state.js";

const dialog = byId("saved-dialog");
const list = byId("saved-list");

/** Add the listeners. */
export function start() {
  byId("saved-open").addEventListener("click", () => {
    const state = current();
    byId("saved-form").hidden = !(hasQuery(state) || hasFilters(state));
    byId("saved-name").value = state.q || [state.entity, state.aspect].filter(Boolean).join(", ");
    dialog.showModal();
    fill();
  });
  byId("saved-close").addEventListener("click", () => dialog.close());
  byId("saved-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const name = byId("saved-name").value.trim();
    const address = toFragment({ ...current(), ...noView() });
    if (!name) return;
    if (await attempt(() => post("api/saved", { name, address }))) {
      toast(`Saved: ${name}`);
      fill();
    }
  });
}

async function fill() {
  const page = await attempt(() => get("api/saved"));
  if (!page) return;
  byId("saved-none").textContent = page.saved.length
    ? ""
    : "None yet. Search for something, then save it here under a name.";
  list.replaceChildren(
    ...page.saved.map((search) =>
      el(
        "li",
        {},
        el("a", { class: "grow", href: `#${search.address}`, onclick: () => dialog.close() }, search.name),
        el("button", { type: "button", "aria-label": `Delete ${search.name}`, onclick: () => drop(search) }, "Delete"),
      ),
    ),
  );
}

async function drop(search) {
  if (await attempt(async () => (await remove(`api/saved/${encodeURIComponent(search.id)}`), true))) fill();
}

/** Return the result of an action, or null and a message in the dialog if it fails. */
async function attempt(action) {
  byId("saved-error").textContent = "";
  try {
    return await action();
  } catch (problem) {
    byId("saved-error").textContent = [problem.title, problem.fact !== problem.title && problem.fact, problem.fix]
      .filter(Boolean)
      .join(". ");
    return null;
  }
}
