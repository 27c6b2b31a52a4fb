import { readFileSync, writeFileSync } from 'node:fs'
import { InvalidArgumentError, Option } from 'commander'
import { CliError, messageOf, UsageError } from '../lib/cli-error.ts'

/** commander shows the message beside the option's name. */
export function wholeNumber(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value) || value < 1) throw new InvalidArgumentError('It takes a whole number from 1.')
  return value
}

/** The values of an option that may be repeated. */
export const several = (value: string, earlier?: unknown): string[] => [...(Array.isArray(earlier) ? earlier.map(String) : []), value]

export function positive(text: string): number {
  const value = Number(text)
  if (!(Number.isFinite(value) && value > 0)) throw new InvalidArgumentError('It takes a number above 0.')
  return value
}

export function share(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !(value >= 0 && value <= 1)) throw new InvalidArgumentError('It takes a number from 0 to 1.')
  return value
}

const UNITS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A time: ISO 8601, or how long ago, such as `10m` or `10m ago`. Returns ISO 8601. */
export function instant(text: string, now = Date.now()): string {
  const [, amount = '', unit = ''] = /^(\d{1,6})([smhd])(?: ago)?$/.exec(text) ?? []
  if (unit !== '') return new Date(now - Number(amount) * UNITS[unit as keyof typeof UNITS]).toISOString()
  const at = isoOf(text)
  if (at === null) throw new InvalidArgumentError('It takes a time such as 10m, 24h, 7d or 2026-11-22T05:00:00Z.')
  return at
}

/** A time in ISO 8601, which may be one to come. */
export function isoTime(text: string): string {
  const at = isoOf(text)
  if (at === null) throw new InvalidArgumentError('It takes a time such as 2026-11-22T05:00:00Z.')
  return at
}

function isoOf(text: string): string | null {
  const at = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? null : new Date(at).toISOString()
}

export const limitOption = (standard = 50): Option =>
  new Option('--limit <n>', 'the largest number of rows').default(standard).argParser(wholeNumber)
export const timeOption = (name: 'since' | 'until', what: string): Option =>
  // commander passes the previous value as the second argument.
  new Option(`--${name} <time>`, `${what}: 10m ago, or an ISO time`).argParser((text) => instant(text))

/** JSON in an argument, or in a file: `@path`, and `@-` for standard input. */
export function jsonArgument(text: string, what: string): unknown {
  const from = text.startsWith('@') ? text.slice(1) : null
  const json = from === null ? text : fileText(from)
  try {
    return JSON.parse(json)
  } catch (error) {
    throw new UsageError(`${what} is not JSON: ${messageOf(error)}`, `Quote it for the shell, or put it into a file: @file.json`, error)
  }
}

export function jsonObject(text: string, what: string): Record<string, unknown> {
  const value = jsonArgument(text, what)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw new UsageError(`${what} is not a JSON object.`)
}

/** The text of a file, or of standard input for `-`. */
export function fileText(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8')
  } catch (error) {
    throw unreadable(path, error)
  }
}

/** Writes a file that only its owner may read. */
export function writeOutput(path: string, text: string): void {
  try {
    writeFileSync(path, text, { mode: 0o600 })
  } catch (error) {
    throw new CliError(`${path} cannot be written: ${messageOf(error)}`, 'Name a file in a folder that exists.', error)
  }
}

export function unreadable(path: string, error: unknown): CliError {
  const code = error instanceof Error && 'code' in error ? error.code : ''
  if (code === 'ENOENT') return new CliError(`There is no file ${path}.`, null, error)
  if (code === 'EISDIR') return new CliError(`${path} is a folder.`, 'Name the files in it.', error)
  return new CliError(`${path} cannot be read: ${messageOf(error)}`, null, error)
}
