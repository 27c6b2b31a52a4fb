/** Billed units of one event. `kept`: rows that retention deletes later. */
export type PerEvent = {
  scope_rows: number
  alarms: number
  d1_rows: number
  scope_bytes: number
  d1_bytes: number
  scope_kept: number
  d1_kept: number
  worker_requests: number
  object_requests: number
  queue_operations: number
}

/** List prices of Workers Paid beyond the included amounts, in dollars per million or GB-month. */
const prices = {
  row: 1,
  worker_request: 0.3,
  object_request: 0.15,
  queue_operation: 0.4,
  object_gb_month: 0.2,
  d1_gb_month: 0.75,
} as const
/** By default a scope keeps its log for 7 days, and D1 keeps events for 30. */
const MONTHS = { scope: 7 / 30, d1: 1 } as const

/** Dollars per million such events with deletion and storage, without reads and CPU. */
export function dollars(event: PerEvent): number {
  const rows = event.scope_rows + event.alarms + event.d1_rows + event.scope_kept + event.d1_kept
  const requests =
    event.worker_requests * prices.worker_request +
    event.object_requests * prices.object_request +
    event.queue_operations * prices.queue_operation
  // A million events of one byte are a thousandth of a GB.
  const stored = (event.scope_bytes * prices.object_gb_month * MONTHS.scope + event.d1_bytes * prices.d1_gb_month * MONTHS.d1) / 1000
  return rows * prices.row + requests + stored
}
