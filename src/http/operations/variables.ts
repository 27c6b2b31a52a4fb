import { HOOK_SECRET_PREFIX, TOOL_SECRET_PREFIX, WEBHOOK_SECRET_PREFIX } from '../../base/secrets.ts'
import { nearestFirst, nearTo } from '../../base/nearest.ts'
import type { Env } from '../../env.ts'

const PREFIX = 'REFLEX_'

type Open = `REFLEX_${'TOOL' | 'WEBHOOK' | 'HOOK'}_${string}`
type Variable = Exclude<Extract<keyof Env, `REFLEX_${string}`>, Open>

/** A variable that is added to `Env` and not here does not compile. */
const VARIABLES = {
  REFLEX_ADMIN_KEY: true,
  REFLEX_ALERT_APPROVAL_MINUTES: true,
  REFLEX_ALERT_COST_TIMES: true,
  REFLEX_ALERT_COST_USD: true,
  REFLEX_ALERT_DEAD_LETTERS: true,
  REFLEX_ALERT_FAILED_SHARE: true,
  REFLEX_ALERT_LEDGER_MB: true,
  REFLEX_ALERT_SCOPE: true,
  REFLEX_ALERT_TURN_SECONDS: true,
  REFLEX_BUDGETS: true,
  REFLEX_CONTROL_PLANE_APPROVAL: true,
  REFLEX_CONTROL_PLANE_KEY: true,
  REFLEX_CONTROL_PLANE_PROJECT: true,
  REFLEX_CONTROL_PLANE_SCOPES: true,
  REFLEX_CONTROL_PLANE_TOOLS: true,
  REFLEX_CONTROL_PLANE_URL: true,
  REFLEX_DECISION_MODEL: true,
  REFLEX_EVENTS_BYTES: true,
  REFLEX_LEARN_EVERY_HOURS: true,
  REFLEX_LEDGER_MB_PER_DAY: true,
  REFLEX_LEDGER_RETENTION_DAYS: true,
  REFLEX_MODEL: true,
  REFLEX_MODEL_PRICES: true,
  REFLEX_OPEN_ENVIRONMENTS: true,
  REFLEX_ORIGINS: true,
  REFLEX_PROVIDER_KEYS: true,
  REFLEX_QUEUE_NOTES: true,
  REFLEX_RATE_LIMIT: true,
  REFLEX_RECEIPTS_KEY: true,
  REFLEX_REDACTION_SECRET: true,
  REFLEX_REFLEXES_OFF: true,
  REFLEX_RETENTION_DAYS: true,
  REFLEX_STACK_MAPPER: true,
  REFLEX_TICKET_SECRET: true,
  REFLEX_UNRECORDED: true,
} satisfies Record<Variable, true>
const KNOWN = Object.keys(VARIABLES)

/** Programs beside the Worker read these; one file of variables often has both. */
const OF_PROGRAMS = ['URL', 'KEY', 'PROFILE', 'SCOPE', 'PREPARED', 'SERVER', 'SHELL_NODE'].map((name) => PREFIX + name)

const TAKEN = new Set([...KNOWN, ...OF_PROGRAMS])

/** Words after the prefix; what follows them is a name that its owner chose. */
const OPEN = [TOOL_SECRET_PREFIX, WEBHOOK_SECRET_PREFIX, HOOK_SECRET_PREFIX].map((open) => open.slice(PREFIX.length, -1))
const isOpen = (name: string): boolean =>
  OPEN.some((word) => name.startsWith(`${PREFIX}${word}_`) && name.length > PREFIX.length + word.length + 1)

/** Variables with the prefix that nothing of Reflex reads: most likely they are misspelt. */
export function unknownVariables(env: object): { name: string; nearest: string }[] {
  const unknown = Object.keys(env).filter((name) => name.startsWith(PREFIX) && !TAKEN.has(name) && !isOpen(name))
  return unknown.map((name) => ({ name, nearest: meantBy(name) }))
}

function meantBy(name: string): string {
  const [word = '', ...own] = name.slice(PREFIX.length).split('_')
  const chosen = nearTo(word, OPEN).map((open) => `${PREFIX}${open}_${own.join('_') || 'NAME'}`)
  const all = [...KNOWN, ...chosen]
  const longer = all.filter((one) => one.startsWith(name))
  return nearestFirst(name, longer.length > 0 ? longer : all)[0] ?? ''
}
