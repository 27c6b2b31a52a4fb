import type { JsonFields } from '../base/json.ts'

export type LogEntry = { seq: number; at: string; kind: string; trace_id: string } & JsonFields
export type NewLogEntry = { at: string; kind: string; trace_id: string } & JsonFields

export type LogStore = {
  append(entry: NewLogEntry): void
  /** In the order in which they came: of one trace where one is named, behind `after`. */
  entries(query?: { trace_id?: string; after?: number; limit?: number }): readonly LogEntry[]
}
