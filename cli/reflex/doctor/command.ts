import type { Command } from 'commander'
import { otherServer, RequestRefused, type Api } from '../../lib/api.ts'
import { CliError, messageOf } from '../../lib/cli-error.ts'
import type { Colour } from '../../lib/paint.ts'
import { handler, type ExitOutcome, type Session } from '../session.ts'
import { written } from '../table.ts'
import type { ScopeState, ScopeSummary, ScopeTool } from '../../../src/contract/scope.ts'
import type { CheckLevel, DoctorHealth, DoctorTools, HealthCheck } from './checks.ts'
import { checksOf, missingToolsCheck, RECENT, scopeBudgetsCheck, scopeToolsCheck, toolCallsCheck } from './checks.ts'

const marks: Record<CheckLevel, { mark: string; colour: Colour }> = {
  ok: { mark: '✓', colour: 'green' },
  warning: { mark: '!', colour: 'yellow' },
  failed: { mark: '✗', colour: 'red' },
}

export function addDoctor(program: Command): void {
  program
    .command('doctor')
    .description('Check a server: connectivity, key, bindings, archive, secrets, migrations, clock; exit with 1 if a check fails')
    .action(handler(doctor))
}

async function doctor({ api, print, signal }: Session): Promise<ExitOutcome> {
  const checks = await examined(api(), signal)
  const ok = checks.every(({ level }) => level !== 'failed')
  const width = Math.max(...checks.map(({ name }) => name.length))
  print.result({ ok, checks }, (paint) =>
    checks.flatMap(({ name, level, detail, hint }) => {
      const { mark, colour } = marks[level]
      const line = `${paint(colour, mark)} ${written(name).padEnd(width)}  ${written(detail)}`
      return level === 'ok' || hint === null ? [line] : [line, `  ${' '.repeat(width)}  ${paint('dim', written(hint))}`]
    }),
  )
  return ok ? undefined : 1
}

/** A server that does not respond fails the first check, and is not asked further. */
async function examined(api: Api, signal: AbortSignal): Promise<HealthCheck[]> {
  const begun = performance.now()
  try {
    await api.json('/health', { signal })
  } catch (error) {
    return [failed('connection', error)]
  }
  const connection: HealthCheck = {
    name: 'connection',
    level: 'ok',
    detail: `${api.url}, ${Math.round(performance.now() - begun)} ms`,
    hint: null,
  }
  const sent = Date.now()
  try {
    const health = await api.json<DoctorHealth>('/health/detailed', { signal })
    if (!health.database) throw otherServer('GET /health/detailed')
    const key: HealthCheck = { name: 'key', level: 'ok', detail: 'accepted', hint: null }
    const checks = checksOf(health, { sent, received: Date.now() })
    const [calls, scopes] = await Promise.all([callsCheck(api, sent, signal), latestScopes(api, signal)])
    const with_tools = scopes.flatMap(({ scope, tools }) => (tools === null ? [] : [{ scope, tools }]))
    return [
      connection,
      key,
      ...checks,
      ...calls,
      ...scopeToolsCheck(with_tools),
      ...missingToolsCheck(with_tools),
      ...scopeBudgetsCheck(scopes),
    ]
  } catch (error) {
    return [connection, failed(error instanceof RequestRefused ? 'key' : 'health', error)]
  }
}

/** A key that may not read statistics, or a server without them, has no check of them. */
async function callsCheck(api: Api, now: number, signal: AbortSignal): Promise<HealthCheck[]> {
  const since = new Date(now - RECENT * 60_000).toISOString()
  const totals = async (metric: string): Promise<Record<string, number>> => {
    const path = `/v1/stats?metric=${metric}&by=tool&bucket=minute&since=${since}`
    const { series } = await api.json<{ series: { label: string; total: number }[] }>(path, { signal })
    return Object.fromEntries(series.map(({ label, total }) => [label, total]))
  }
  try {
    const [ended, failures] = await Promise.all([totals('tool.calls'), totals('tool.failed')])
    return toolCallsCheck({ ended, failed: failures })
  } catch {
    return []
  }
}

/** Scopes that are asked themselves: each of them is woken, and asks its MCP servers for tools. */
const MOST_ASKED = 20

type DoctorScope = { scope: string; tools: DoctorTools['tools'] | null; budget_problem: string | null }

/** The scopes that changed last. A scope or a server that cannot say has neither. */
async function latestScopes(api: Api, signal: AbortSignal): Promise<DoctorScope[]> {
  const get = async <Item>(path: string): Promise<Item[]> => {
    const { items } = await api.json<{ items: Item[] }>(path, { signal })
    return items
  }
  const listed = await get<ScopeSummary>('/v1/scopes?limit=1000').catch(() => [])
  const latest = listed.toSorted((one, other) => other.updated_at.localeCompare(one.updated_at)).slice(0, MOST_ASKED)
  return Promise.all(
    latest.map(async ({ scope }) => {
      const path = `/v1/scopes/${encodeURIComponent(scope)}`
      const tools = await get<ScopeTool>(`${path}/tools`).catch(() => null)
      const state = await api.json<Partial<ScopeState>>(path, { signal }).catch((): Partial<ScopeState> => ({}))
      return { scope, tools, budget_problem: state.budget_problem ?? null }
    }),
  )
}

const failed = (name: string, error: unknown): HealthCheck => ({
  name,
  level: 'failed',
  detail: messageOf(error),
  hint: error instanceof CliError ? error.hint : null,
})
