import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { connect, type Api } from '../../cli/lib/api.ts'
import { listen, type ReceivedRequest, type SentResponse, type Streamed } from '../../cli/lib/listen.ts'
import { startServer } from '../../cli/lib/local-server.ts'
import { temporaryFolder } from '../../cli/lib/temporary-folder.ts'
import { wholeLog } from '../../cli/lib/follow-log.ts'
import type { LogEntry } from '../../src/contract/log-entry.ts'
import type { SettingsPatch } from '../../src/contract/settings/settings.ts'
import type { Input } from './inputs.ts'
import { wordsOf } from './words.ts'

/** An event by its fields, and the tool that is right; null: nothing. */
export type ServedItem = { fields: Record<string, string | number>; tool: string | null }
type Served = { taught: number; measured: number; every: number; bound: number }

const SCOPE = 'bench/served'
const POLL_MS = 4
/** Events of a figure. */
const PART = 400

const textOf = (content: unknown): string =>
  typeof content === 'string' ? content : ((content ?? []) as { text?: string }[]).map(({ text = '' }) => text).join('')

type Asked = { messages: { role: string; content: unknown }[]; stream?: boolean }

/** The place of the newest event that the context shows. */
const latestIn = ({ messages }: Asked): number =>
  Number(Array.from(textOf(messages.findLast(({ role }) => role === 'user')?.content).matchAll(/"id":"event-(\d+)"/g)).at(-1)?.[1] ?? -1)

/** A model that calls the tool, and then says in one of several ways that it did. */
function answer({ body }: ReceivedRequest, items: readonly ServedItem[]): SentResponse | Streamed {
  const asked = JSON.parse(body) as Asked
  const index = latestIn(asked)
  const tool = items[index]?.tool ?? null
  const isDone = asked.messages.at(-1)?.role === 'tool'
  const calls = tool !== null && !isDone
  const words = wordsOf(`event-${index}`, asked.messages.length).input['content']
  const call = { index: 0, id: `call-${index}`, type: 'function', function: { name: `http_${tool}`, arguments: '{"about":"it"}' } }
  const message = { role: 'assistant', content: isDone ? words : '', ...(calls && { tool_calls: [call] }) }
  const usage = { prompt_tokens: 500, completion_tokens: 20, total_tokens: 520 }
  const finish_reason = calls ? 'tool_calls' : 'stop'
  const head = { id: 'scripted', created: 0, model: 'scripted' }
  if (asked.stream)
    return {
      status: 200,
      events: [{ ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta: message, finish_reason }], usage }],
    }
  return { status: 200, body: { ...head, object: 'chat.completion', choices: [{ index: 0, message, finish_reason }], usage } }
}

const toolsOf = (host: string, names: readonly string[]): SettingsPatch => ({
  agent: 'prompted',
  instructions: 'Do with each message what is right.',
  allowed_hosts: [host],
  http_tools: names.flatMap((name) => [
    {
      name: `http.${name}`,
      description: `Does ${name}`,
      method: 'POST' as const,
      url: `http://${host}/${name}`,
      body: { about: '{{about}}' },
    },
    {
      name: `http.un${name}`,
      description: `Undoes ${name}`,
      method: 'POST' as const,
      url: `http://${host}/un${name}`,
      body: { about: '{{about}}' },
      undoes: { tool: `http.${name}`, match: ['about'] },
    },
  ]),
})

async function learn(api: Api): Promise<unknown> {
  const { run_id } = await api.json<{ run_id: string }>('/v1/learn', { method: 'POST', body: { scope: SCOPE } })
  for (;;) {
    const run = await api.json<{ status: string }>(`/v1/learn/runs/${run_id}`)
    if (run.status !== 'running') return run
    await wait(100)
  }
}

/** Sends events one by one to the real local server, whose scope learns every so many. */
export async function measureServed(items: readonly ServedItem[], { taught, measured, every, bound }: Served, log: (line: string) => void) {
  const folder = temporaryFolder('reflex-bench-')
  const key = randomUUID().replaceAll('-', '')
  const model = await listen((request) => answer(request, items))
  const done = await listen(() => ({ status: 200, body: { done: true } }))
  const vars = {
    REFLEX_ADMIN_KEY: key,
    REFLEX_MODEL: 'openai-compatible/scripted',
    OPENAI_COMPATIBLE_BASE_URL: `http://${model.host}/v1`,
    OPENAI_COMPATIBLE_API_KEY: 'none',
  }
  const server = await startServer({ persist_to: folder.path, vars })
  try {
    const api = connect(server.url, key)
    const path = `/v1/scopes/${encodeURIComponent(SCOPE)}`
    const names = [...new Set(items.flatMap(({ tool }) => tool ?? []))]
    await api.json(path, {
      method: 'PATCH',
      body: { ...toolsOf(done.host, names), learning: { mode: 'auto', trusted_sources: ['key:admin'], min_agreement: bound } },
    })
    const start = performance.now()
    for (let index = 0; index < taught + measured; index += 1) {
      const { fields } = items[index] as ServedItem
      await api.json(`${path}/events`, {
        method: 'POST',
        body: { id: `event-${index}`, type: 'ws.message', connection_id: 'bench', content: '', ...fields },
      })
      for (;;) {
        const { inbox } = await api.json<{ inbox: Record<string, number> }>(path)
        if (Object.values(inbox).every((count) => count === 0)) break
        await wait(POLL_MS)
      }
      if ((index + 1) % every === 0 && index + 1 < taught + measured) {
        const run = (await learn(api)) as {
          found: number
          answer: string | null
          rejected: { what: string; reason: string }[]
          candidates: { id: string; version: string }[]
        }
        log(
          `${index + 1}: ${Math.round((performance.now() - start) / 1000)} s, found ${run.found} ${run.candidates.map(({ id, version }) => `${id}@${version}`).join()}; ${run.answer ?? ''} ${run.rejected
            .slice(0, 2)
            .map(({ what, reason }) => `${what.slice(0, 40)}: ${reason}`)
            .join(' | ')}`,
        )
      }
    }
    await wait(8000)
    return figuresOf(await wholeLog(api, SCOPE, new AbortController().signal), items, { taught, measured })
  } finally {
    await server.stop()
    model.stop()
    done.stop()
    folder.remove()
  }
}

function figuresOf(log: readonly LogEntry[], items: readonly ServedItem[], { taught, measured }: Pick<Served, 'taught' | 'measured'>) {
  const size = taught + measured
  const calls = Array.from({ length: size }, () => 0)
  const by: string[] = Array.from({ length: size }, () => '')
  const acted: (string | null | undefined)[] = Array.from({ length: size })
  const lines: string[] = []
  let last = 0
  for (const entry of log) {
    const place = Number(/^event-(\d+)$/.exec(entry.event_ids.at(-1) ?? '')?.[1] ?? -1)
    if (entry.kind === 'event-accepted') last = place
    if (place >= 0 && entry.kind === 'model-called') calls[place] = (calls[place] ?? 0) + 1
    if (place >= 0 && entry.kind === 'event-ended') by[place] = entry.outcome.by
    if (place >= 0 && entry.kind === 'reflex-fired' && entry.state === 'active') {
      const { action } = entry
      acted[place] = action.action_type === 'call_tool' ? action.tool : action.action_type === 'ignore' ? null : undefined
    }
    if (entry.kind === 'reflex-moved') lines.push(`${last}: ${entry.reflex_id}@${entry.version} ${entry.to}: ${entry.reason}`)
    if (entry.kind === 'certificate-changed' && entry.change !== 'issued')
      lines.push(`${last}: ${entry.reflex_id}@${entry.version} ${entry.change} ${entry.act ?? ''}: ${entry.reason}`)
  }
  const of = (from: number, to: number) => {
    const places = Array.from({ length: to - from }, (_, at) => from + at)
    const decided = places.filter((at) => by[at] === 'reflex')
    const right = decided.filter((at) => acted[at] === (items[at]?.tool == null ? null : `http.${items[at]?.tool}`))
    const free = places.filter((at) => calls[at] === 0)
    return {
      from,
      to,
      decided: decided.length / places.length,
      right: right.length / Math.max(1, decided.length),
      without_model: free.length / places.length,
      calls: places.reduce((sum, at) => sum + (calls[at] ?? 0), 0),
    }
  }
  const parts = Array.from({ length: Math.ceil(size / PART) }, (_, part) => of(part * PART, Math.min(size, (part + 1) * PART)))
  return { lines, parts: [...parts, of(0, taught), of(taught, size)] }
}

/** An input of the benchmark as events of one type, with a tool for each decision. */
export const servedItems = ({ items }: Input): ServedItem[] =>
  items.map(({ saw: { event }, label }) => ({ fields: fieldsOf(event), tool: label[0]?.name ?? null }))

const COMMON = new Set(['id', 'timestamp', 'meta', 'source', 'scope', 'type'])
export const fieldsOf = (event: object) =>
  Object.fromEntries(Object.entries(event).filter(([name]) => !COMMON.has(name))) as ServedItem['fields']
