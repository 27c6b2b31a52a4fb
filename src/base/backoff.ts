/** Pauses between attempts, in ms: the first, which doubles with each failure, and the longest. */
export type Pauses = { first_ms: number; longest_ms: number }

const HOUR_MS = 3_600_000

/** The pauses of what retries by itself. Settings and manifests have their own. */
export const pauses = {
  /** A read of D1 that others wait for, or that a notification usually makes superfluous. */
  read: { first_ms: 5000, longest_ms: 5000 },
  job: { first_ms: 2000, longest_ms: 60_000 },
  decision_model: { first_ms: 500, longest_ms: 60_000 },
  spans: { first_ms: 1000, longest_ms: 300_000 },
  replication: { first_ms: 1000, longest_ms: 30_000 },
  learning: { first_ms: 1000, longest_ms: 60_000 },
  /** A queue's message. Cloudflare counts its attempts, the first one included. */
  queue: { first_ms: 4000, longest_ms: 128_000 },
  /** All messages of a topic of the Ledger, or one that fails alone. */
  topic: { first_ms: 500, longest_ms: 30_000 },
  message: { first_ms: 500, longest_ms: HOUR_MS },
} as const satisfies Record<string, Pauses>

/** The pause after so many failures in a row. */
export const backoff = ({ first_ms, longest_ms }: Pauses, failures = 1): number => Math.min(longest_ms, first_ms * 2 ** (failures - 1))
