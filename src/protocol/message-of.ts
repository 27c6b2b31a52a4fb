const LONGEST = 4000

/** What to tell of something thrown, whatever it is: it never throws itself, and is never long. */
export function messageOf(error: unknown): string {
  try {
    const text = error instanceof Error ? `${error.name === 'Error' ? '' : `${error.name}: `}${error.message}` : `thrown: ${String(error)}`
    return text.slice(0, LONGEST)
  } catch {
    return 'something was thrown that cannot be shown as text'
  }
}
