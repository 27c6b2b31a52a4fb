const MOST = 60
const answers = new Map<string, unknown>()

/**
 * The last answer of a path, so that a page that is opened again shows it until the new one is
 * there.
 */
export const cached = <Value>(path: string): Value | undefined => answers.get(path) as Value | undefined

export function cache(path: string, value: unknown): void {
  answers.delete(path)
  answers.set(path, value)
  const [oldest] = answers.keys()
  if (answers.size > MOST && oldest !== undefined) answers.delete(oldest)
}

export const clearCache = (): void => answers.clear()
