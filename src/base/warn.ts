import { messageOf } from './error-text.ts'

/** A line of the Worker's log: `message` says what happened, the other fields where. */
type LogLine = { message: string; error?: unknown; [field: string]: unknown }

export const warn = (line: LogLine): void => console.warn(written(line))
export const logError = (line: LogLine): void => console.error(written(line))

const written = ({ error, ...line }: LogLine): string =>
  JSON.stringify(error === undefined ? line : { ...line, error: typeof error === 'string' ? error : messageOf(error) })
