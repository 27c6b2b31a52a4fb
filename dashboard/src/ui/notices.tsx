import { signal } from '@preact/signals'

type Notice = { id: number; text: string }
const shown = signal<Notice[]>([])
let last = 0

const SHOWN_MS = 6000

/**
 * A short message that something was done; it disappears by itself. Problems stay where they arose.
 */
export function notify(text: string): void {
  last += 1
  const id = last
  shown.value = [...shown.value, { id, text }]
  setTimeout(() => (shown.value = shown.value.filter((notice) => notice.id !== id)), SHOWN_MS)
}

export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {shown.value.map(({ id, text }) => (
        <p key={id}>{text}</p>
      ))}
    </div>
  )
}
