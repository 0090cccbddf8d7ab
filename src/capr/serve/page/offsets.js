// The server counts characters (Unicode code points), and JavaScript counts UTF-16 units: an emoji has two of these.

/** A text with the offsets of the server, of which the first is `begin`. */
export class Text {
  #units = null; // the unit at which each character begins; null if every character has one unit

  constructor(text, begin = 0) {
    this.text = text;
    this.begin = begin;
    if (/[\ud800-\udfff]/.test(text)) this.#units = characterStarts(text);
    this.end = begin + (this.#units ? this.#units.length - 1 : text.length);
  }

  /** Return the characters of [begin, end), limited to the text. */
  slice(begin, end) {
    return this.text.slice(this.unit(begin), this.unit(end));
  }

  /** Return the offset of a UTF-16 unit of `text`. */
  offset(unit) {
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

  /** Return the UTF-16 unit of `text` at an offset. */
  unit(offset) {
    const index = Math.min(Math.max(offset, this.begin), this.end) - this.begin;
    return this.#units ? this.#units[index] : index;
  }
}

function characterStarts(text) {
  const starts = new Uint32Array(text.length + 1);
  let count = 0;
  for (let unit = 0; unit < text.length; count++) {
    starts[count] = unit;
    unit += text.codePointAt(unit) > 0xffff ? 2 : 1;
  }
  starts[count] = text.length;
  return starts.subarray(0, count + 1);
}
