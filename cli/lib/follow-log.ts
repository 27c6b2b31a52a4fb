import { setTimeout as wait } from 'node:timers/promises'
import type { LogEntry } from '../../src/contract/log-entry.ts'
import type { Page } from '../../src/contract/scope-api.ts'
import { type Api, otherServer, refused, Unreachable } from './api.ts'
import { CliError } from './cli-error.ts'
import { sseParser } from './sse.ts'

const RECONNECT_MS = 250
/** The server sends a heartbeat every 15 s. */
const SILENCE_MS = 40_000

/** `after`: the `seq` to start after, 0 by default. */
type Follow = { scope: string; after?: number; signal: AbortSignal; onEntry: (entry: LogEntry) => void }

/**
 * Follows a scope's log until the signal aborts. A broken connection resumes after the last entry
 * that was seen.
 */
export async function followLog(api: Api, { scope, after = 0, signal, onEntry }: Follow): Promise<void> {
  let last = after
  const seen = (entry: LogEntry) => {
    if (entry.seq <= last) return
    last = entry.seq
    onEntry(entry)
  }
  while (!signal.aborted) {
    try {
      await readStream(api, `/v1/scopes/${encodeURIComponent(scope)}/stream?after=${last}`, { last, signal, seen })
    } catch (error) {
      if (error instanceof CliError && !(error instanceof Unreachable)) throw error
    }
    await wait(RECONNECT_MS, undefined, { signal }).catch(() => {})
  }
}

type Reader = { last: number; signal: AbortSignal; seen: (entry: LogEntry) => void }

async function readStream(api: Api, path: string, { last, signal, seen }: Reader): Promise<void> {
  const silence = new AbortController()
  const both = AbortSignal.any([signal, silence.signal])
  const timer = setTimeout(() => silence.abort(), SILENCE_MS)
  try {
    const response = await api.open(path, { accept: 'text/event-stream', 'last-event-id': String(last) }, both)
    // The server is unavailable for now; treat it as a broken connection.
    if (response.status >= 500) return void (await response.text())
    if (!response.ok || !response.body) throw await refused(response, `GET ${path}`)
    if (!response.headers.get('content-type')?.startsWith('text/event-stream')) throw otherServer(`GET ${path}`)
    const parse = sseParser()
    const decoder = new TextDecoder()
    for await (const bytes of response.body) {
      timer.refresh()
      for (const { event, data } of parse(decoder.decode(bytes, { stream: true }))) {
        if (event !== 'log') continue
        const entry: LogEntry = JSON.parse(data)
        seen(entry)
      }
    }
  } finally {
    clearTimeout(timer)
  }
}

const MOST_PAGE = 1000

/** Every entry of a scope's log that was written until now, oldest first. */
export async function wholeLog(api: Api, scope: string, signal: AbortSignal): Promise<LogEntry[]> {
  const entries: LogEntry[] = []
  for (let after: string | null = '0'; after !== null;) {
    const path: string = `/v1/scopes/${encodeURIComponent(scope)}/log?limit=${MOST_PAGE}&after=${after}`
    const { items, next_cursor } = await api.json<Page<LogEntry>>(path, { signal })
    entries.push(...items)
    after = next_cursor
  }
  return entries
}
