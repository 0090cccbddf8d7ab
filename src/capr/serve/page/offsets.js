// The server counts characters (Unicode code points), JavaScript counts UTF-16 units; an emoji is one and two.

/** A text whose places are counted as the server counts them, from `begin` on. */
export class Text {
  #units = null; // where each character begins; null if every character is one unit

  constructor(text, begin = 0) {
    this.text = text;
    this.begin = begin;
    if (/[\ud800-\udfff]/.test(text)) this.#units = places(text);
    this.end = begin + (this.#units ? this.#units.length - 1 : text.length);
  }

  /** The characters of [begin, end); what lies outside of the text is left out. */
  slice(begin, end) {
    return this.text.slice(this.unit(begin), this.unit(end));
  }

  /** The place of a UTF-16 unit of `text`. */
  place(unit) {
    if (!this.#units) return this.begin + unit;
    let low = 0;
    let high = this.#units.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#units[middle] < unit) low = middle + 1;
      else high = middle;
    }
    return this.begin + low;
  }

  /** The UTF-16 unit of `text` at a place. */
  unit(place) {
    const at = Math.min(Math.max(place, this.begin), this.end) - this.begin;
    return this.#units ? this.#units[at] : at;
  }
}

function places(text) {
  const found = new Uint32Array(text.length + 1);
  let count = 0;
  for (let unit = 0; unit < text.length; count++) {
    found[count] = unit;
    unit += text.codePointAt(unit) > 0xffff ? 2 : 1;
  }
  found[count] = text.length;
  return found.subarray(0, count + 1);
}
