/** What a text ends with. */

/** The text without those of a character that it ends with. A regular expression may take the square of its length. */
export function withoutLast(character: string, text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) {
    end -= 1;
  }
  return text.slice(0, end);
}
