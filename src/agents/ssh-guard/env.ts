declare module '../../env.ts' {
  interface Env {
    /** The guard reports each block to this address. Unset: it reports none. */
    BLOCK_WEBHOOK_URL?: string
    /** A ticket system that opens and closes tickets. Unset: tickets are rows in D1 only. */
    TICKET_WEBHOOK_URL?: string
    /** Receives notifications for the people on duty. Unset: none are sent. */
    NOTIFY_WEBHOOK_URL?: string
  }
}

export {}
