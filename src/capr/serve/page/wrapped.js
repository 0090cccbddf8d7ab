// Notes come with lines broken at 70 or 80 columns. Such a break is shown as a blank, so that text flows at any width;
// a break that somebody meant stays. Only the look changes: the text in the page is the text of the note.

const WIDTH = 72; // columns: where the next word would have found room, the break was meant
const WIDEST = 120; // columns: text with longer lines was not broken at all
const MEANT = /^(?:\s|[-*•·○▪–—>|#]|\d+[.)]\s|\p{Lu}[^:.]{0,40}:|$)/u; // blank lines, indents, lists, headings
const FIGURE = /^[[\d]/; // a date or a number: a row of a table, unless the line before calls for it
const CALLS = /[\p{Ll},]$/u;

/** The units, in order, at which a line was broken only because the next word had no room. */
export function softBreaks(text) {
  const lines = text.split("\n");
  const found = [];
  if (lines.some((line) => line.length > WIDEST)) return found;
  let unit = 0;
  for (let at = 0; at + 1 < lines.length; at++) {
    unit += lines[at].length;
    const next = lines[at + 1];
    const word = /^\S*/.exec(next)[0];
    const line = lines[at].trimEnd();
    const meant = MEANT.test(next) || (FIGURE.test(next) && !CALLS.test(line));
    if (!meant && line.length + 1 + word.length > WIDTH) found.push(unit);
    unit += 1;
  }
  return found;
}
