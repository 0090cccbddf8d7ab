// A histogram of documents by month. A click selects a bar, and a drag several; keyboard users have the date fields.

import { counted, svg } from "./dom.js";

const MAX_BARS = 60; // longer periods have a bar per quarter or per year
const HEIGHT = 40;

/** Return bars without gaps from the counts of months: [{from, to, count}], with days in ISO form. */
export function bars(dates) {
  if (!dates.length) return [];
  const months = dates.map(({ month, count }) => ({ at: monthNumber(month), count })).sort((a, b) => a.at - b.at);
  const [first, last] = [months[0].at, months.at(-1).at];
  const width = [1, 3, 12].find((size) => (last - first) / size < MAX_BARS) ?? 12;
  const start = first - (first % width);
  const result = [];
  for (let at = start; at <= last; at += width) {
    result.push({ from: `${monthName(at)}-01`, to: lastDay(at + width - 1), count: 0 });
  }
  for (const { at, count } of months) result[Math.floor((at - start) / width)].count += count;
  return result;
}

const monthNumber = (name) => Number(name.slice(0, 4)) * 12 + Number(name.slice(5, 7)) - 1;
const monthName = (at) => `${String(Math.floor(at / 12)).padStart(4, "0")}-${String((at % 12) + 1).padStart(2, "0")}`;
const lastDay = (at) => `${monthName(at)}-${new Date(Date.UTC(Math.floor(at / 12), (at % 12) + 1, 0)).getUTCDate()}`;

/** Return the drawing. It calls `choose(from, to)` when the user selects days. */
export function histogram(dates, { from, to }, choose) {
  const all = bars(dates);
  if (all.length < 2) return null;
  const highest = Math.max(...all.map((bar) => bar.count));
  const total = all.reduce((sum, bar) => sum + bar.count, 0);
  const drawing = svg("svg", {
    class: "histogram",
    viewBox: `0 0 ${all.length} ${HEIGHT}`,
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": `${counted(total, "document")} from ${all[0].from} to ${all.at(-1).to}; at most ${highest} in a bar`,
  });
  const isSelected = (bar) => (!from || bar.to >= from) && (!to || bar.from <= to);
  all.forEach((bar, at) => {
    const height = bar.count ? Math.max(3, (bar.count / highest) * (HEIGHT - 2)) : 0;
    drawing.append(
      svg(
        "rect",
        { class: "slot", x: at, y: 0, width: 1, height: HEIGHT },
        svg("title", {}, `${bar.from} to ${bar.to}: ${counted(bar.count, "document")}`),
      ),
      svg("rect", { class: isSelected(bar) ? "bar" : "bar out", x: at + 0.1, y: HEIGHT - height, width: 0.8, height }),
    );
  });
  let firstBar = null;
  const barAt = (event) => {
    const box = drawing.getBoundingClientRect();
    return Math.min(all.length - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * all.length)));
  };
  drawing.addEventListener("pointerdown", (event) => {
    firstBar = barAt(event);
    drawing.setPointerCapture(event.pointerId);
  });
  drawing.addEventListener("pointerup", (event) => {
    if (firstBar === null) return;
    const [low, high] = [firstBar, barAt(event)].sort((a, b) => a - b);
    firstBar = null;
    choose(all[low].from, all[high].to);
  });
  return drawing;
}
