/** Limits on everything that grows. Sizes in bytes, times in ms. */
export const limits = {
  body_bytes: 1024 * 1024,
  /** An exported trace that is sent back, uncompressed. */
  file_bytes: 10 * 1024 * 1024,
  event_bytes: 100_000,
  /** The code of a reflex. */
  code_bytes: 64 * 1024,
  /** Maximum size of a program's weights; its text has them in base64. */
  weights_bytes: 256 * 1024,
  /** Maximum length of a program's text, its weights included. */
  program_bytes: 64 * 1024 + 350_000,
  idempotence_key: 512,
  events_per_request: 1000,
  /** Queues bill per 64 kB of a message. A single event may be larger. */
  queue_message_bytes: 63_500,
  /** Size of one SQL parameter; SQLite fails near 2 MB. */
  sql_json_bytes: 1_000_000,
  /** Size of a context in memory, in one turn or response, besides the limit on its count. */
  context_bytes: 8_000_000,
  /** Size of one read of the log, or of one batch replicated to D1. */
  page_bytes: 4_000_000,
  log_page: 1000,
  claim: 1000,
  wait_ms: 30_000,
  result_bytes: 256_000,
  /** Characters of an answer of a model: its text, its thoughts and the arguments of its calls. */
  answer_length: 2_000_000,
  /** Calls of tools in an answer of a model. Each takes about a millisecond, whatever it does. */
  answer_calls: 256,
  /** Size of a provider's answer, or of one line of a stream. */
  answer_body_bytes: 8_000_000,
  arguments_bytes: 256_000,
  /** A log entry: larger fields are replaced by their size and hash. */
  log_entry_bytes: 1_000_000,
  inputs_bytes: 1_000_000,
  /** Ids listed in a log entry. */
  listed_ids: 100,
  settings_bytes: 64_000,
  chain_length: 100,
  timers_per_scope: 100,
  /** Tickets used in one scope per minute. */
  tickets_per_scope: 10_000,
  sockets_per_scope: 10_000,
  streams_per_scope: 1000,
  /** Sockets and streams per key and scope. */
  connections_per_key: 256,
  socket_messages_per_second: 1000,
  /** Unacknowledged bytes sent to a socket; a mark asks the client to acknowledge. */
  unread_bytes: 512 * 1024,
  mark_bytes: 64 * 1024,
  /** Bytes for the sockets of a key whose clients have returned no mark, before one is closed. */
  unconfirmed_bytes: 16 * 1024 * 1024,
  unconfirmed_bytes_per_scope: 32 * 1024 * 1024,
  /** The assumed reading of such a client in a quarter of a second. */
  assumed_bytes: 1024 * 1024,
  /** Size of one write to a stream. */
  stream_page_bytes: 256 * 1024,
  /** Keys within the scopes of the key that creates another one, unless it covers all scopes. */
  keys_within: 10_000,
  ticket_ms: 60_000,
} as const
