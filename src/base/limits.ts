/** Limits on everything that grows. Sizes in bytes, times in ms. */
export const limits = {
  body_bytes: 1024 * 1024,
  event_bytes: 100_000,
  idempotence_key: 512,
  events_per_request: 1000,
  /** A queue's price counts each 64 kB that a message begins; one event may be larger. */
  queue_message_bytes: 63_500,
  /** What one SQL parameter may carry; SQLite gives up near 2 MB. */
  sql_json_bytes: 1_000_000,
  /** What of a context is in memory, in one turn or in one answer, beside the limit on its count. */
  context_bytes: 8_000_000,
  /** What is read of the log, or told to D1, at once. */
  page_bytes: 4_000_000,
  log_page: 1000,
  claim: 1000,
  wait_ms: 30_000,
  result_bytes: 256_000,
  /** The arguments of one effect or step, as JSON. */
  arguments_bytes: 256_000,
  /** One entry of the log: larger fields are replaced by their size and hash. */
  log_entry_bytes: 1_000_000,
  /** What a proposal gives a skill. */
  inputs_bytes: 1_000_000,
  /** Ids that a log entry lists; a turn may consider more events. */
  listed_ids: 100,
  /** What is set of a scope, in all. */
  settings_bytes: 64_000,
  /** Reflexes in a scope's chain. */
  chain_length: 100,
  timers_per_scope: 100,
  /** Tickets that may be used in one scope within a minute. */
  tickets_per_scope: 10_000,
  sockets_per_scope: 10_000,
  streams_per_scope: 1000,
  /** Sockets and streams of one key in one scope. */
  connections_per_key: 256,
  socket_messages_per_second: 1000,
  /** What a socket is sent ahead of what its client says that it has read; a mark asks it to say so. */
  unread_bytes: 512 * 1024,
  mark_bytes: 64 * 1024,
  /** What a stream is given at once. */
  stream_page_bytes: 256 * 1024,
  ticket_ms: 60_000,
} as const
