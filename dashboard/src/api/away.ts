import { signal } from '@preact/signals'

/** True while the server does not answer. */
export const away = signal(false)
/** Counts how often the server came back: what is shown is then loaded again. */
export const returns = signal(0)

const ASK_MS = 1000

export function answered(): void {
  if (!away.peek()) return
  away.value = false
  returns.value += 1
}

export function unanswered(): void {
  if (away.peek()) return
  away.value = true
  ask()
}

function ask(): void {
  setTimeout(() => void askOnce(), ASK_MS)
}

async function askOnce(): Promise<void> {
  const response = await fetch('/health', { cache: 'no-store' }).catch(() => null)
  if (response?.ok) answered()
  else if (away.peek()) ask()
}
