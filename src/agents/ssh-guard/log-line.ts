import { z } from 'zod'
import { eventType } from '../../core/event.ts'

/**
 * A line of a host's log as written, or only its message if the sender has split off `program` and
 * `pid`.
 */
export const logLine = eventType('log.line', {
  host: z.string().min(1).max(255),
  line: z.string().min(1).max(8192),
  program: z.string().min(1).max(64).optional(),
  pid: z.int().min(0).optional(),
})
export type LogLine = z.infer<typeof logLine>
