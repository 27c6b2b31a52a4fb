export { count, counted, dollars, duration, money } from '../../src/base/amounts.ts'

/**
 * A line without control characters: log lines, names and errors contain strangers' text, which
 * must not steer the terminal. A line break and the indentation around it become one space.
 */
export function harmless(text: string): string {
  const line = text.replaceAll(/[ \t]*[\r\n][ \t\r\n]*/g, ' ')
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  return line.replaceAll(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, '?')
}

/** Truncates to a width, with a mark. */
export const cut = (text: string, width: number): string => (text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`)

/** Wraps at spaces into lines of at most `width`; a longer word gets its own line. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

/** A text as one word of a shell's command. */
export const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`
