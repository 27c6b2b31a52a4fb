/** Derives a span from an id, so that it needs no look-up (FNV-1a, 64 bit). */
export function spanOf(id: string): string {
  let high = 0xcbf29ce4
  let low = 0x84222325
  for (let index = 0; index < id.length; index += 1) {
    low = (low ^ id.charCodeAt(index)) >>> 0
    const product = low * 0x1b3
    high = (Math.imul(high, 0x1b3) + Math.floor(product / 0x1_0000_0000) + (low << 8)) >>> 0
    low = product >>> 0
  }
  return high.toString(16).padStart(8, '0') + low.toString(16).padStart(8, '0')
}

/** Ids of events are unique in their scope. */
export const eventSpan = ({ scope, id }: { scope: string; id: string }): string => spanOf(`event:${scope}:${id}`)
/** The way of an event through the queue. */
export const queueSpan = ({ scope, id }: { scope: string; id: string }): string => spanOf(`queue:${scope}:${id}`)
/** A run that resumes after a crash continues its span. */
export const runSpan = (run_id: string): string => spanOf(`run:${run_id}`)
export const stepSpan = (run_id: string, phase: string, index: number): string => spanOf(`run:${run_id}:${phase}:${index}`)
