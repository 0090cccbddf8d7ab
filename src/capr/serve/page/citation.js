// Where something stands, in words; and how it gets to the clipboard.

/** `p05, Discharge summary, 2025-09-11, FAMILY HISTORY (p05-2025-09-11-discharge, characters 1824 to 1941)`. */
export function citation(place) {
  const { patient, type, date } = place.metadata ?? {};
  const facts = [patient, type, date, (place.headings ?? []).join(" > ")].filter(Boolean).join(", ");
  const exact = `${place.document}, characters ${place.begin} to ${place.end}`;
  return `${facts || place.title || place.document} (${exact})`;
}

/** Copies a text; gives whether that was possible. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyTheOldWay(text); // without TLS, as on many intranets, there is no navigator.clipboard
  }
}

function copyTheOldWay(text) {
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

/** Hands a file to the person. */
export function download({ blob, name }) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
