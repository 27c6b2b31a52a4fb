import { missingIn, missingText } from '../../base/missing-binding.ts'
import { messagesOf } from '../../base/faults.ts'
import type { Env } from '../../env.ts'

type Required = { [Name in keyof Env]-?: undefined extends Env[Name] ? never : Name }[keyof Env]
/** A binding that is added to `Env` and not here does not compile. */
const ALL = { SCOPE: true, SWEEPER: true, GLOBAL_KEYS: true, LEARNER: true, LEDGER: true, DB: true, EVENTS: true } satisfies Record<
  Required,
  true
>
export const REQUIRED = Object.keys(ALL) as Required[]

export const missingBindings = (env: Env): Required[] => REQUIRED.filter((name) => !isBound(env[name]))

/** The types say that each is. */
const isBound = (binding: unknown): boolean => binding !== undefined

/** The message of a call of what is not there. */
const OF_NOTHING = /Cannot read properties of undefined/

/** Says which binding is missing, if this is why something failed; or null. */
export function lackOf(error: unknown, env: Env | null): string | null {
  const named = missingIn(error)
  if (named !== null) return sentence(named)
  return env !== null && messagesOf(error).some((message) => OF_NOTHING.test(message)) ? missingSentence(env) : null
}

/** Says which bindings are missing; null if none is. */
export function missingSentence(env: Env): string | null {
  const missing = missingBindings(env)
  return missing.length === 0 ? null : sentence(missingText(missing))
}

const sentence = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`

/** D1's words for what a migration would add. Other errors say nothing about the tables. */
const LACKS = /^D1_ERROR: no such (?:table|column)/

export const lacksTables = (error: unknown): boolean => messagesOf(error).some((message) => LACKS.test(message))

/** The way to give D1 the tables of this version. */
export const APPLY =
  'apply the migrations: npx wrangler d1 migrations apply DB, with --remote, or --local (and the --persist-to of wrangler dev), or npm run deploy'
