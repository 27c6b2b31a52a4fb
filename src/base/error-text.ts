const LONGEST = 4000

/** Describes any thrown value. Never throws itself, and limits the length. */
export function messageOf(error: unknown): string {
  try {
    const text = error instanceof Error ? `${error.name === 'Error' ? '' : `${error.name}: `}${error.message}` : `thrown: ${String(error)}`
    return text.slice(0, LONGEST)
  } catch {
    return 'a value was thrown that cannot be converted to text'
  }
}

/**
 * The error that `messageOf` described. The stack shows that an error is plain whose message begins
 * like a name.
 */
export function errorOf(text: string, stack: string | null = null): Error {
  const isPlain = stack?.startsWith(`Error: ${text.slice(0, HEAD)}`)
  const [, name = 'Error', message] = (!isPlain && /^([A-Z][\w$]*): ([^]*)$/.exec(text)) || []
  return name === 'Error' ? new Error(text) : Object.assign(new Error(message), { name })
}

/** A stack that was cut has more than so many characters of the message. */
const HEAD = 1000

const LONGEST_STACK_BYTES = 4096

/** The stack of an error and its causes, at most 4 kB; null if it has none. */
export function stackOf(error: unknown): string | null {
  try {
    const stacks: string[] = []
    for (let one = error; one instanceof Error && stacks.length < 5; one = one.cause) stacks.push(one.stack ?? messageOf(one))
    return stacks.length === 0 ? null : cutStack(stacks.join('\ncaused by: '))
  } catch {
    return null
  }
}

export const cutStack = (stack: string): string => cutToBytes(stack, LONGEST_STACK_BYTES)

function cutToBytes(text: string, most: number): string {
  const bytes = new TextEncoder().encode(text.slice(0, most))
  // Drops a character that the cut split.
  return bytes.length <= most ? text.slice(0, most) : new TextDecoder().decode(bytes.subarray(0, most)).replace(/\uFFFD+$/, '')
}

/** The flaws of a value in one line, each with its place. */
export const flawsText = (flaws: readonly { path: string; message: string }[]): string =>
  flaws.map(({ path, message }) => `${path} ${message}`.trim()).join('; ')
