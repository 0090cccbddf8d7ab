// Searches that were kept, by name, at the server.

import { get, post, remove } from "./api.js";
import { byId, el } from "./dom.js";
import { toast } from "./notices.js";
import { current, hasFilters, hasQuery, written } from "./state.js";

const dialog = byId("saved-dialog");
const list = byId("saved-list");

/** Listens. */
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
    const address = written({ ...current(), document: "", at: "", ask: "" });
    if (!name) return;
    if (await tried(() => post("api/saved", { name, address }))) {
      toast(`Saved: ${name}`);
      fill();
    }
  });
}

async function fill() {
  const given = await tried(() => get("api/saved"));
  if (!given) return;
  byId("saved-none").textContent = given.saved.length
    ? ""
    : "None yet. Search for something, then save it here under a name.";
  list.replaceChildren(
    ...given.saved.map((one) =>
      el(
        "li",
        {},
        el("a", { class: "grow", href: `#${one.address}`, onclick: () => dialog.close() }, one.name),
        el("button", { type: "button", "aria-label": `Delete ${one.name}`, onclick: () => drop(one) }, "Delete"),
      ),
    ),
  );
}

async function drop(one) {
  if (await tried(async () => (await remove(`api/saved/${encodeURIComponent(one.id)}`), true))) fill();
}

/** What an action gives; what goes wrong is said in the dialog. */
async function tried(action) {
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
