import type { OfflineRequest } from './offline-request.ts'

const MAX_COUNTS = 5
const MAX_QUOTE = 120
const COUNT = /^[\s*-]*([\w.:/@][\w .:/@-]{0,60}?)\s*[:=]\s*(\d+)\s*$/

/** What can be said of a request without understanding it: its last tool result, or its size, counts and first and last line. */
export function extract({ text, last_tool_result }: OfflineRequest): string {
  if (last_tool_result) return `The tool ${last_tool_result.tool} answered ${quote(JSON.stringify(last_tool_result.output) ?? 'nothing')}.`
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const [first] = lines
  const last = lines.at(-1)
  if (first === undefined || last === undefined) return 'The message is empty.'
  if (lines.length === 1) return `The message reads ${quote(first)}.`
  return [`The message has ${lines.length} lines.`, counts(lines), `The first reads ${quote(first)}, the last ${quote(last)}.`]
    .filter(Boolean)
    .join(' ')
}

function counts(lines: string[]): string {
  const found = lines.flatMap((line) => {
    const [, name, count] = COUNT.exec(line) ?? []
    return name === undefined ? [] : [`${name.trim()} ${count}`]
  })
  if (found.length === 0) return ''
  return `It counts ${found.slice(0, MAX_COUNTS).join(', ')}${found.length > MAX_COUNTS ? ' and more' : ''}.`
}

function quote(line: string): string {
  const trimmed = line.trim()
  return `"${trimmed.length > MAX_QUOTE ? `${trimmed.slice(0, MAX_QUOTE)}…` : trimmed}"`
}
