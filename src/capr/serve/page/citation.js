// Citations of passages, the clipboard, and downloads.

/**
 * Return a citation:
 * `p05, Discharge summary, 2025-09-11, FAMILY HISTORY (p05-2025-09-11-discharge, characters 1824 to 1941)`.
 */
export function citation(passage) {
  const { patient, type, date } = passage.metadata ?? {};
  const facts = [patient, type, date, (passage.headings ?? []).join(" > ")].filter(Boolean).join(", ");
  const location = `${passage.document}, characters ${passage.begin} to ${passage.end}`;
  return `${facts || passage.title || passage.document} (${location})`;
}

/** Copy a text to the clipboard, and return whether that worked. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelection(text); // without TLS, as on many intranets, browsers have no navigator.clipboard
  }
}

function copySelection(text) {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "unseen";
  area.setAttribute("aria-hidden", "true");
  document.body.append(area);
  const focused = document.activeElement;
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  focused?.focus({ preventScroll: true });
  return done;
}

/** Offer a file as a download. */
export function download({ blob, name }) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
