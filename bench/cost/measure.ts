import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { ServerOptions } from '../../cli/lib/local-server.ts'
import { ended, reflexClient, send, until, type ReflexClient } from '../clients.ts'
import { columns, type Bench } from '../figure.ts'
import { replyByReflex, SAYS_NO } from '../figures/socket.ts'
import { batches, chatMessage, concurrently } from '../load.ts'
import type { Spent } from './index.ts'
import { dollars, type PerEvent } from './prices.ts'

/** `target`: rows of the scope and of D1, alarms included, and bytes kept in both, in batches. */
type Kind = {
  name: string
  /** The kind as docs/cost.md names it. */
  event: string
  way: 'queue' | 'direct'
  events: number
  target: { scope_rows: number; d1_rows: number; bytes: number }
  scope: (index: number) => string
  content?: string
  prepare?: (reflex: ReflexClient, scopes: string[], tool: Tool) => Promise<void>
}
type Tool = { url: string; host: string }
type Measured = { how: 'in batches' | 'alone'; per_event: PerEvent; dollars: number; target: string; ok: boolean }
export type CostLine = Measured & { name: string; event: string }

const note = (tool: Tool) => ({
  allowed_hosts: [tool.host],
  http_tools: [{ name: 'http.note', description: 'Notes an event', method: 'POST', url: `${tool.url}/{{event}}` }],
})
const steps = ['one', 'two', 'three'].map((name) => ({ name, tool: 'http.note', args: { event: '{{event}}' }, timeout_ms: 5000 }))
const skill = {
  id: 'bench.note',
  version: '1.0.0',
  owner: 'bench',
  description: 'Notes an event in three steps',
  compat: {},
  signature: { inputs: [{ name: 'event', type: 'string', required: true }], outputs: [] },
  plan: { idempotence_key: 'note:{{event}}', budget: { max_cost_usd: 1, max_latency_ms: 60_000 }, steps },
  activation: { required_slots: ['event'], keywords_any: ['note'], score_weights: { keyword_hit: 1 }, tau: 0, max_concurrency: 100 },
  policy: { allow_roles: ['bench'] },
}

const kinds: Kind[] = [
  {
    name: 'filtered out',
    event: 'filtered out, by the queue',
    way: 'queue',
    events: 2000,
    target: { scope_rows: 3, d1_rows: 3, bytes: 900 },
    scope: (index) => `deploy/cost-${index}`,
    content: ' '.repeat(200),
  },
  {
    name: 'a turn says no',
    event: 'considered by a turn that says no, by the queue',
    way: 'queue',
    events: 2000,
    target: { scope_rows: 5, d1_rows: 3, bytes: 1200 },
    scope: (index) => `cost-turn-${index}`,
    prepare: configure(() => SAYS_NO),
  },
  {
    name: 'the same, direct',
    event: 'the same, directly',
    way: 'direct',
    events: 2000,
    target: { scope_rows: 5, d1_rows: 3, bytes: 1200 },
    scope: (index) => `cost-direct-${index}`,
    prepare: configure(() => SAYS_NO),
  },
  {
    name: 'a reflex replies',
    event: 'answered by a reflex',
    way: 'queue',
    events: 2000,
    target: { scope_rows: 5, d1_rows: 3, bytes: 1500 },
    scope: (index) => `cost-reply-${index}`,
    prepare: (reflex, scopes) => replyByReflex(reflex, ...scopes),
  },
  {
    name: 'a reflex calls a tool',
    event: 'given to a tool by a reflex',
    way: 'queue',
    events: 1000,
    target: { scope_rows: 12, d1_rows: 3, bytes: 3000 },
    scope: (index) => `cost-tool-${index}`,
    prepare: actByReflex('bench-tool', `{ action_type: 'call_tool', tool: 'http.note', args: { event: context.event.id } }`),
  },
  {
    name: 'a skill of three steps',
    event: 'given to a skill of three steps',
    way: 'queue',
    events: 500,
    target: { scope_rows: 28, d1_rows: 3, bytes: 8000 },
    scope: (index) => `cost-skill-${index}`,
    prepare: actByReflex('bench-skill', `{ action_type: 'run_skill', skill_id: 'bench.note', inputs: { event: context.event.id } }`),
  },
]

function configure(patch: (tool: Tool) => Record<string, unknown>) {
  return async (reflex: ReflexClient, scopes: string[], tool: Tool): Promise<void> => {
    for (const scope of scopes) await reflex.configure(scope, patch(tool))
  }
}

function actByReflex(id: string, action: string) {
  return async (reflex: ReflexClient, scopes: string[], tool: Tool): Promise<void> => {
    await reflex.register({ id, code: `function reflex(context) { return ${action} }` })
    const blackboard = { policy: { roles: ['bench'] } }
    await configure(() => ({ ...note(tool), blackboard, reflexes: [{ id, rate: 60_000 }] }))(reflex, scopes, tool)
  }
}

type Start = (name: string, more: Partial<ServerOptions>) => Promise<string>

/** Counts what an event of each kind writes, in batches of 100 and alone. */
export async function measureCost(
  start: Start,
  { key, count, progress }: { key: string; count: Bench['count']; progress: Bench['progress'] },
): Promise<CostLine[]> {
  const answers = createServer((request, response) => {
    request.resume().on('end', () => response.setHeader('content-type', 'application/json').end('{"ok":true}'))
  }).listen(0, '127.0.0.1')
  try {
    // As a deployed queue, which forgets nothing.
    const vars = { REFLEX_ADMIN_KEY: key, REFLEX_QUEUE_NOTES: 'off' }
    const url = await start('cost', { script: 'bench/cost/index.ts', vars })
    const reflex = reflexClient(url, key)
    const host = `127.0.0.1:${(answers.address() as AddressInfo).port}`
    await reflex.activateSkill(skill)
    const sides: (() => Promise<CostLine>)[] = []
    for (const kind of kinds) {
      progress(`cost: preparing ${kind.name}`)
      const tool = { url: `http://${host}`, host }
      const lone = { ...kind, events: Math.ceil(count(LONE_SCOPES)) }
      sides.push(await inBatches(reflex, { ...kind, events: count(kind.events) }, tool), await alone(reflex, lone, tool))
    }
    await alarmsFired()
    const lines: CostLine[] = []
    for (const measure of sides) {
      progress(`cost: ${lines.length + 1} of ${sides.length}`)
      lines.push(await measure())
    }
    return lines
  } finally {
    answers.close()
  }
}

const SCOPES = 5
const eventFor = (scope: string, content?: string) => ({ ...chatMessage(content), scope, source: 'bench' })

async function inBatches(reflex: ReflexClient, kind: Kind, tool: Tool): Promise<() => Promise<CostLine>> {
  const scopes = Array.from({ length: SCOPES }, (_, index) => kind.scope(index))
  await kind.prepare?.(reflex, scopes, tool)
  const send100s = async (count: number) => {
    const events = Array.from({ length: count }, (_, index) => eventFor(scopes[Math.floor(index / 100) % SCOPES] ?? '', kind.content))
    await settled(reflex, scopes, { count, send: () => concurrently(batches(events, 100), (batch) => sendTo(reflex, kind.way, batch)) })
  }
  // The first events of a scope create its rows.
  await send100s(Math.min(SCOPES * 100, kind.events))
  return async () => {
    const before = await spent(reflex, scopes)
    await send100s(kind.events)
    await alarmsFired()
    return lineOf(kind, 'in batches', perEvent(before, await spent(reflex, scopes), kind.events))
  }
}

const LONE_SCOPES = 20

async function alone(reflex: ReflexClient, kind: Kind, tool: Tool): Promise<() => Promise<CostLine>> {
  const scopes = Array.from({ length: kind.events }, (_, index) => kind.scope(100 + index))
  await kind.prepare?.(reflex, scopes, tool)
  const sendOneEach = async () => {
    const send = () => concurrently(scopes, (scope) => sendTo(reflex, kind.way, [eventFor(scope, kind.content)]))
    await settled(reflex, scopes, { count: kind.events, send })
  }
  await sendOneEach()
  return async () => {
    const before = await spent(reflex, scopes)
    await sendOneEach()
    await alarmsFired()
    return lineOf(kind, 'alone', perEvent(before, await spent(reflex, scopes), kind.events))
  }
}

type Sent = ReturnType<typeof eventFor>

async function sendTo(reflex: ReflexClient, way: Kind['way'], events: readonly Sent[]): Promise<void> {
  await (way === 'queue' ? reflex.publish(JSON.stringify(events)) : reflex.accept(events[0]?.scope ?? '', JSON.stringify(events)))
}

/** Sends events, and waits until each has its outcome, in D1, too. */
async function settled(
  reflex: ReflexClient,
  scopes: string[],
  { count, send }: { count: number; send: () => Promise<void> },
): Promise<void> {
  // The requests follow one another: a burst would use connections that have been idle until they
  // are closed.
  const total = async () => {
    let sum = 0
    for (const scope of scopes) sum += ended(await reflex.state(scope))
    return sum
  }
  const before = await total()
  await send()
  await until(async () => (await total()) >= before + count, { pause_ms: 100, timeout_ms: 600_000, what: `all events in ${scopes[0]}` })
  await reflex.quiet(...scopes)
}

/** Waits for the alarms that the events have set. */
const alarmsFired = () => new Promise((resolve) => setTimeout(resolve, 1500))

async function spent(reflex: ReflexClient, scopes: string[]): Promise<Spent> {
  const query = scopes.map((scope) => `scope=${encodeURIComponent(scope)}`).join('&')
  return JSON.parse(await send(`${reflex.url}/v1/bench/spent?${query}`)) as Spent
}

function perEvent(before: Spent, after: Spent, events: number): PerEvent {
  return {
    scope_rows: after.scope.rows / events,
    alarms: after.scope.alarms / events,
    d1_rows: after.d1.rows / events,
    scope_bytes: (after.scope.bytes - before.scope.bytes) / events,
    d1_bytes: (after.d1.bytes - before.d1.bytes) / events,
    scope_kept: (after.scope.kept - before.scope.kept) / events,
    d1_kept: (after.d1.kept - before.d1.kept) / events,
    worker_requests: after.worker_requests / events,
    object_requests: after.object_requests / events,
    queue_operations: after.queue_operations / events,
  }
}

/** Targets are for batches: the bytes of a few lone events are pages. */
function lineOf({ name, event, way, target }: Kind, how: CostLine['how'], per_event: PerEvent): CostLine {
  const { scope_rows, alarms, d1_rows, scope_bytes, d1_bytes } = per_event
  const met = scope_rows + alarms <= target.scope_rows && d1_rows <= target.d1_rows && scope_bytes + d1_bytes <= target.bytes
  const text = how === 'alone' ? '' : `≤ ${target.scope_rows} + ${target.d1_rows}, ${target.bytes} B`
  return { name: `${name} (${way})`, event, how, per_event, dollars: dollars(per_event), target: text, ok: how === 'alone' || met }
}

export function costTable(lines: readonly CostLine[]): string {
  const head = ['an event writes', '', 'scope rows', 'alarms', 'D1 rows', 'scope bytes', 'D1 bytes', 'target', '', '$ per million']
  const rows = lines.map(({ name, how, per_event, target, ok, dollars: cost }) => {
    const { scope_rows, alarms, d1_rows, scope_bytes, d1_bytes } = per_event
    const bytes = how === 'alone' ? ['', ''] : [scope_bytes, d1_bytes].map((value) => value.toFixed(0))
    const counts = [scope_rows, alarms, d1_rows].map((value) => value.toFixed(1))
    return [name, how, ...counts, ...bytes, target, how === 'alone' ? '' : ok ? 'ok' : 'missed', cost.toFixed(1)]
  })
  return columns([head, ...rows])
}
