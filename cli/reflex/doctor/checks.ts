import { windowWarning } from '../../../src/contract/lists/packs.ts'
import { isOutside } from '../../../src/contract/settings/outside-tools.ts'
import type { ScopeTool } from '../../../src/contract/scope.ts'
import type { ModelCallReport } from '../../../src/contract/reports/health.ts'
import { counted } from '../../lib/text.ts'

export type CheckLevel = 'ok' | 'warning' | 'failed'
export type HealthCheck = { name: string; level: CheckLevel; detail: string; hint: string | null }

type Part = { ok: boolean; duration_ms: number; error: string | null }
type PackDatabase = { name: string; error: string | null } & Record<
  'bytes' | 'database_bytes' | 'bytes_per_day' | 'kept_days',
  number | null
>
/** The response of `GET /health/detailed`, as far as it is checked. */
export type DoctorHealth = {
  database: Part
  queue: Part
  /** Null without the binding; older servers do not report it. */
  archive?: Part | null
  inboxes: { scopes: number; open: number } | null
  parked: { scopes: number; work: number } | null
  dead_letters: { total: number } | null
  /** Null if the Ledger did not answer; older servers do not report it. */
  ledger?: { bytes: number; retention_days?: number | null } | null
  retention: {
    days: number | null
    backlog: number
    packs?: { most_bytes: number | null; kept_days: number | null; leave_in_days?: number | null }
    /** Older servers do not report them. */
    databases?: PackDatabase[]
  } | null
  model: string
  model_error: string | null
  /** The results of model calls; older servers do not report them. */
  model_calls?: ModelCallReport | null
  agents: string[]
  deployment?: {
    time: string
    bindings: { present: string[]; missing: string[]; unused: string[] }
    /** Older servers report only the error. */
    schema?: 'fits' | 'outdated' | 'unknown'
    schema_error: string | null
    database_bytes?: number | null
    /** Older servers do not have it. */
    origins?: 'observe' | 'ask' | 'refuse'
    assumed_destinations?: Record<string, string[]>
    secrets: { name: string; problem: string | null }[] | null
    unknown_variables?: UnknownVariable[] | null
    unpriced_budgets?: { name: string; problem: string }[] | null
  } | null
}
/** `nearest`: the name that was meant, most likely. */
export type UnknownVariable = { name: string; nearest: string }
/** When the request was sent and answered, in ms. */
type Timing = { sent: number; received: number }

const check = (name: string, level: CheckLevel, detail: string, hint: string | null = null): HealthCheck => ({ name, level, detail, hint })
const LOGS = 'Look into the log of the Worker: npx wrangler tail.'

/** Judges a server by its report of its own health. */
export function checksOf(health: DoctorHealth, timing: Timing): HealthCheck[] {
  return [
    part('database', health.database, 'Check the binding DB in wrangler.toml, then the status of D1.'),
    part('queue', health.queue, 'Check the binding EVENTS in wrangler.toml; npx wrangler queues list shows the queues.'),
    ...archiveCheck(health),
    health.model_error === null
      ? modelCheck(health)
      : check('model', 'failed', health.model_error, 'Set REFLEX_MODEL and what it needs; the README lists the models.'),
    ...deploymentChecks(health, timing),
    ...sizeCheck('ledger size', health.ledger?.bytes ?? null, 'REFLEX_LEDGER_RETENTION_DAYS keeps it small (docs/ledger.md).'),
    ...workChecks(health),
  ]
}

const part = (name: string, { ok, duration_ms, error }: Part, hint: string): HealthCheck =>
  ok ? check(name, 'ok', `${duration_ms} ms`) : check(name, 'failed', error ?? 'it does not respond', hint)

/** By what calls really did: the configuration alone says nothing of a provider that is away. */
function modelCheck({ model, model_calls: calls }: DoctorHealth): HealthCheck {
  if (!calls) return check('model', 'ok', `${model}; whether it answers is not known`)
  const { status, last_answer_at: last, failing_since, failures, scopes_failing, scopes_waiting, asks_at, error } = calls
  const answer = last === null ? 'no call was made yet' : `last answer at ${last}`
  if (failures === 0) return check('model', 'ok', `${model}, ${answer}`)
  const asks = asks_at === null ? '' : `; asks again at ${asks_at}`
  const detail =
    `${model}: ${counted(failures, 'call')} failed since ${failing_since} in ${counted(scopes_failing, 'scope')}, ` +
    `${scopes_waiting} of them waiting${asks}; ${last === null ? 'it never answered' : answer}; ${error}`
  const hint =
    scopes_waiting === 0
      ? 'Nobody waits: what was refused is in reflex dlq list. Check REFLEX_MODEL and the secret of its key, then reflex dlq retry ID.'
      : 'reflex scope list --state model lists who waits; reflex scope ask SCOPE has one ask at once.'
  return check('model', status === 'silent' ? 'failed' : 'warning', detail, hint)
}

function archiveCheck({ archive }: DoctorHealth): HealthCheck[] {
  if (archive === undefined) return []
  if (archive === null) return [check('archive', 'ok', 'none: retention deletes without an archive')]
  return [part('archive', archive, 'Nothing is deleted until R2 responds. `reflex scope show SCOPE` has the last error of a scope.')]
}

const named = (secrets: readonly { name: string }[]): string => secrets.map(({ name }) => name).join(', ')

function deploymentChecks({ deployment }: DoctorHealth, timing: Timing): HealthCheck[] {
  if (!deployment)
    return [check('deployment', 'warning', 'the server does not report its bindings, secrets and clock', 'Deploy this version.')]
  const { bindings, secrets } = deployment
  const faulty = (secrets ?? []).filter(({ problem }) => problem !== null)
  return [
    bindings.missing.length > 0
      ? check('bindings', 'failed', `missing: ${bindings.missing.join(', ')}`, 'Add them to wrangler.toml and deploy.')
      : check(
          'bindings',
          'ok',
          bindings.present.join(', ') + (bindings.unused.length > 0 ? `; not used: ${bindings.unused.join(', ')}` : ''),
        ),
    migrationsCheck(deployment),
    ...sizeCheck('database size', deployment.database_bytes ?? null, SMALL_DATABASE),
    ...faulty.map(({ name, problem }) => check(`secret ${name}`, 'warning', problem ?? '', 'npx wrangler secret put NAME sets a secret.')),
    secrets === null
      ? check('secrets', 'warning', 'not checked', 'Only an admin key of every scope sees the names of secrets.')
      : check('secrets', 'ok', named(secrets.filter(({ problem }) => problem === null)) || 'none'),
    ...(deployment.unpriced_budgets ?? []).map(({ name, problem }) => budgetCheck(name, problem)),
    ...(deployment.unknown_variables ?? []).map((variable) => check('variable', 'warning', unknownText(variable), RENAME)),
    ...(deployment.origins ? [check('origins', 'ok', ORIGINS[deployment.origins])] : []),
    ...assumedCheck(deployment.assumed_destinations ?? {}),
    clockCheck(deployment.time, timing),
  ]
}

export const unknownText = ({ name, nearest }: UnknownVariable): string =>
  `${name} is set, and nothing of Reflex reads it: the nearest name is ${nearest}`
const RENAME = 'Correct its name. Begin the names of your own variables with something else than REFLEX_.'

const budgetCheck = (name: string, problem: string): HealthCheck =>
  check('budget', 'warning', `${name}: ${problem}`, 'Until then each event that needs the model becomes a dead letter.')

const ORIGINS = {
  observe: 'a destination that nobody named is only logged; REFLEX_ORIGINS = "ask" has a person asked (docs/security.md)',
  ask: 'a person is asked about a destination that nobody named',
  refuse: 'a call to a destination that nobody named is refused',
}

/** The check names what is taken for a destination, so that its owner can say otherwise. */
function assumedCheck(assumed: Readonly<Record<string, string[]>>): HealthCheck[] {
  const tools = Object.entries(assumed).map(([tool, paths]) => `${tool} (${paths.join(', ')})`)
  if (tools.length === 0) return []
  return [check('destinations', 'ok', `assumed by format and name: ${tools.join(', ')}; \`destinations\` of a tool says otherwise`)]
}

/** The tools of a scope, as far as they are checked. */
export type DoctorTools = { scope: string; tools: Pick<ScopeTool, 'name' | 'destinations' | 'assumed' | 'unavailable'>[] }

/** The check names what is assumed of tools that scopes have by their settings. */
export function scopeToolsCheck(asked: readonly DoctorTools[]): HealthCheck[] {
  const scopes = new Map<string, string[]>()
  for (const { scope, tools } of asked)
    for (const { name, destinations, assumed } of tools)
      if (assumed && destinations.length > 0 && isOutside(name)) {
        const tool = `${name} (${destinations.join(', ')})`
        scopes.set(tool, [...(scopes.get(tool) ?? []), scope])
      }
  if (scopes.size === 0) return []
  const said = Array.from(scopes, ([tool, [first, ...more]]) => `${tool} in ${first}${more.length > 0 ? ` and ${more.length} more` : ''}`)
  const detail = `assumed by format and name in ${counted(asked.length, 'scope')} that changed last: ${said.join(', ')}`
  return [check('destinations in settings', 'ok', `${detail}; \`destinations\` in the settings says otherwise`)]
}

/** The tools and MCP servers that the settings of these scopes declare and nothing can call. */
export function missingToolsCheck(asked: readonly DoctorTools[]): HealthCheck[] {
  const said = asked.flatMap(({ scope, tools }) =>
    tools.flatMap(({ name, unavailable }) => (unavailable === undefined ? [] : [`${name} of ${scope}: ${unavailable}`])),
  )
  if (said.length === 0) return []
  const hint = 'No turn is offered these. Mend the server or the setting; reflex scope tools SCOPE asks again.'
  return [check('missing tools', 'warning', said.join('; '), hint)]
}

/** The scopes whose budget in money allows no call, among those that were asked. */
export const scopeBudgetsCheck = (asked: readonly { scope: string; budget_problem: string | null }[]): HealthCheck[] =>
  asked.flatMap(({ scope, budget_problem: problem }) => (problem === null ? [] : [budgetCheck(`the scope ${scope}`, problem)]))

/** Calls of tools within the last hour, by tool. */
type DoctorCalls = { ended: Record<string, number>; failed: Record<string, number> }

/** Fewer failures of a tool are expected: single calls fail. */
const LEAST_FAILED = 3

/** The server is well while what its tools call is not: only the counts of calls show it. */
export function toolCallsCheck({ ended, failed }: DoctorCalls): HealthCheck[] {
  const tools = Object.entries(failed).flatMap(([tool, count]) => {
    const of = Math.max(count, ended[tool] ?? 0)
    return count >= LEAST_FAILED && count * 2 >= of ? [`${count} of ${counted(of, 'call')} of ${tool}`] : []
  })
  const hint = 'reflex trace list --status partial lists their traces; reflex trace show ID has the error of each call.'
  if (tools.length > 0) return [check('tools', 'warning', `failed within ${RECENT} minutes: ${tools.join(', ')}`, hint)]
  const sum = Object.values(ended).reduce((total, count) => total + count, 0)
  return [check('tools', 'ok', `${counted(sum, 'call')} within ${RECENT} minutes`)]
}

/** Minutes whose calls are judged: what has ended for so long is no longer the news. */
export const RECENT = 15

type Deployment = NonNullable<DoctorHealth['deployment']>

function migrationsCheck({ schema, schema_error }: Deployment): HealthCheck {
  if (schema_error !== null) return check('migrations', 'failed', schema_error, 'Run npm run deploy, which applies the migrations.')
  if (schema !== 'unknown') return check('migrations', 'ok', 'the tables of D1 fit this version')
  return check('migrations', 'warning', 'not checked: D1 does not answer', 'Ask again when the database answers.')
}

/** The platform's limit for one database, and for one object. */
const MOST_BYTES = 10e9
const SMALL_DATABASE = 'REFLEX_RETENTION_DAYS keeps it small; an archive keeps what is deleted (docs/archive.md).'

function sizeCheck(name: string, bytes: number | null, hint: string): HealthCheck[] {
  if (bytes === null) return []
  const detail = `${(bytes / 1e6).toFixed(1)} MB of ${MOST_BYTES / 1e9} GB`
  return [check(name, bytes > 0.8 * MOST_BYTES ? 'warning' : 'ok', detail, hint)]
}

/** Tickets and timers of clients break where their clock is off by more. */
const MOST_SKEW_MS = 5000

function clockCheck(time: string, { sent, received }: Timing): HealthCheck {
  // The server read its clock at some time in between.
  const server = Date.parse(time)
  const skew = Math.round(server < sent ? server - sent : server > received ? server - received : 0)
  const detail =
    Math.abs(skew) < 100 ? 'in time with the server' : `${Math.abs(skew) / 1000} s ${skew > 0 ? 'behind' : 'ahead of'} the server`
  return Math.abs(skew) <= MOST_SKEW_MS
    ? check('clock', 'ok', detail)
    : check('clock', 'failed', detail, 'Set the clock of this machine: --since and --until would miss events.')
}

function packChecks({ retention, archive }: DoctorHealth): HealthCheck[] {
  if (!retention?.packs) return []
  if (retention.packs.most_bytes === null)
    return [check('events in D1', 'failed', 'REFLEX_EVENTS_BYTES is not valid, so D1 may fill up', 'Set it to a number of bytes.')]
  const warning = windowWarning(retention, archive)
  return warning === null ? [] : [check('events in D1', 'warning', warning, MORE_ROOM)]
}

const MORE_ROOM =
  'Raise REFLEX_EVENTS_BYTES up to what D1 holds, bind another database (docs/operating.md), or an archive (docs/archive.md).'
const ANOTHER = 'Bind another database of packed events: docs/operating.md says how and when.'

/** Beyond, the rate of a database with little in it tells no number. */
const MANY_DAYS = 3650

/** Tells how full a database of packs is, and how fast it fills. */
function databaseCheck({ name, error, bytes, database_bytes, bytes_per_day, kept_days }: PackDatabase): HealthCheck {
  const title = `events in ${name}`
  if (error !== null)
    return check(title, 'failed', error, 'Lists lack its events until it answers. Run npm run deploy if it has no tables.')
  const mb = (number: number | null) => `${((number ?? 0) / 1e6).toFixed(1)} MB`
  const rate = bytes_per_day === null ? '' : `, ${mb(bytes_per_day)} a day`
  const days = kept_days === null ? '' : kept_days > MANY_DAYS ? ', years fit' : `, ${kept_days} days fit`
  const detail = `${mb(bytes)} of packed events${rate}${days}; ${mb(database_bytes)} of ${MOST_BYTES / 1e9} GB in all`
  // The check of the database's size says so of DB.
  return check(title, name !== 'DB' && (database_bytes ?? 0) > 0.8 * MOST_BYTES ? 'warning' : 'ok', detail, ANOTHER)
}

function workChecks(health: DoctorHealth): HealthCheck[] {
  const { dead_letters: letters, parked, retention, inboxes, ledger } = health
  const checks: HealthCheck[] = []
  if (inboxes)
    checks.push(check('inboxes', 'ok', `${counted(inboxes.open, 'event')} without an outcome in ${counted(inboxes.scopes, 'scope')}`))
  if (letters && letters.total > 0) checks.push(check('dead letters', 'warning', String(letters.total), 'reflex dlq list shows them.'))
  if (parked && parked.work > 0)
    checks.push(
      check(
        'parked work',
        'warning',
        `${parked.work} in ${counted(parked.scopes, 'scope')}`,
        'reflex scope show SCOPE lists it; see docs/durability.md.',
      ),
    )
  if (retention?.days === null)
    checks.push(check('retention', 'failed', 'REFLEX_RETENTION_DAYS is not valid, so nothing is deleted', 'Set it to a number of days.'))
  checks.push(...packChecks(health))
  for (const database of retention?.databases ?? []) checks.push(databaseCheck(database))
  if (ledger?.retention_days === null)
    checks.push(
      check('ledger retention', 'failed', 'REFLEX_LEDGER_RETENTION_DAYS is not valid, so nothing leaves', 'Set it to 31 to 36500 days.'),
    )
  if (retention && retention.backlog > 5000)
    checks.push(check('retention', 'warning', `${retention.backlog} events are kept for too long: deletion cannot keep up`, LOGS))
  return checks
}
