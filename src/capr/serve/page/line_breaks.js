// Many notes have lines wrapped at 70 or 80 columns. The page shows such a break as a space, so that text flows at any
// width, and keeps intended breaks. Only the display changes: the text in the page is the text of the note.

const WIDTH = 72; // columns; a break is intended if the next word has room within them
const MAX_WIDTH = 120; // columns; text with longer lines is not wrapped
const INTENDED = /^(?:\s|[-*•·○▪–—>|#]|\d+[.)]\s|\p{Lu}[^:.]{0,40}:|$)/u; // blank lines, indents, lists, headings
const NUMBER = /^[[\d]/; // a date or a number begins a row of a table, unless the line before continues
const CONTINUES = /[\p{Ll},]$/u;

/** Return the UTF-16 units of the soft line breaks, which are only there because the next word had no room. */
export function softBreaks(text) {
  const lines = text.split("\n");
  const breaks = [];
  if (lines.some((line) => line.length > MAX_WIDTH)) return breaks;
  let unit = 0;
  for (let index = 0; index + 1 < lines.length; index++) {
    unit += lines[index].length;
    const next = lines[index + 1];
    const word = /^\S*/.exec(next)[0];
    const line = lines[index].trimEnd();
    const isIntended = INTENDED.test(next) || (NUMBER.test(next) && !CONTINUES.test(line));
    if (!isIntended && line.length + 1 + word.length > WIDTH) breaks.push(unit);
    unit += 1;
  }
  return breaks;
}
