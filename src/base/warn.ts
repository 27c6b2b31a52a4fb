import { messageOf } from './error-text.ts'
import { hidesNothing, type SecretHider } from './secrets.ts'

/** A line of the Worker's log: `message` says what happened, the other fields where. */
type LogLine = { message: string; error?: unknown; [field: string]: unknown }

let hider: SecretHider = hidesNothing

/** Masks these secrets in all that this module prints. */
export const hideInOutput = (secrets: SecretHider): void => void (hider = secrets)

export const warn = (line: LogLine): void => console.warn(hider.text(written(line)))
export const logError = (line: LogLine): void => console.error(hider.text(written(line)))
/** Prints a text of several lines. */
export const printError = (text: string): void => console.error(hider.text(text))

const written = ({ error, ...line }: LogLine): string =>
  JSON.stringify(error === undefined ? line : { ...line, error: typeof error === 'string' ? error : messageOf(error) })
