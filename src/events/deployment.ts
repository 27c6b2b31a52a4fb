import type { z } from 'zod'
import type { Alert } from '../contract/alert.ts'
import type { health } from '../contract/reports/health.ts'
import type { Env } from '../env.ts'
import type { SortAnswers } from '../store/packs/told.ts'
import type { FeatureRetention } from './retention.ts'

/** `features`: what all features of the deployment declare. Returns a count. */
type SweepStep = { name: string; run: (env: Env, now: number, features: readonly DeploymentFeature[]) => Promise<number> }
type MeasureSample = { suffix?: string; labels?: Record<string, string>; value: number }
/** Numbers of one name, in the format of Prometheus. */
export type Measure = { name: string; kind: 'counter' | 'gauge' | 'histogram'; help: string; samples: MeasureSample[] }
/** A version that runs no more. `artifact`: `reflex:ID@V` or `skill:ID@V`. */
export type EndedVersion = { artifact: string; hash: string; reason: string }

/**
 * A feature as a part of the deployment, beside its routes and its part of a scope. Reports, sweeps
 * and routes of the platform ask all features, and name none.
 */
export type DeploymentFeature = {
  /** Its tables in D1, which the report on health compares with the database. */
  readonly tables?: Readonly<Record<string, unknown>>
  /** The reason why its configuration cannot be used; null if it can, or is unset. */
  readonly problem?: (env: Env) => string | null
  /** Its fields of the report on health, for scopes within `patterns`. Null if it fails. */
  readonly health?: (env: Env, patterns: readonly string[]) => Promise<Partial<z.infer<typeof health>>>
  /** Its numbers for Prometheus, for scopes within `patterns`. */
  readonly measures?: (env: Env, patterns: readonly string[]) => Promise<readonly Measure[]>
  /** Conditions that somebody should know. `hour`: the start of this hour. Times are in ms. */
  readonly alerts?: (env: Env, times: { now: number; hour: number }) => Promise<readonly Alert[]>
  /** Precedes the deletion of a key. */
  readonly keyDeleted?: (env: Env, key: { id: string; name: string }) => Promise<void>
  /** Sends again what became dead letters of an origin that is its own, by their ids. */
  readonly retries?: { readonly origin: string; readonly run: (env: Env, ids: readonly string[]) => Promise<void> }
  /** Follows the end of a sealed version. Throws nothing: a sweep does what it could not. */
  readonly versionEnded?: (env: Env, ended: EndedVersion) => Promise<void>
  /** Steps of each sweep, after lost events were sent again and overdue scopes were woken. */
  readonly sweeps?: readonly SweepStep[]
  /** Runs each minute, by the cron alone. */
  readonly scheduled?: (env: Env, now: number) => Promise<void>
  /** Sorts what scopes answer beside outcomes, each once or more. */
  readonly packs?: { readonly name: string; readonly sort: SortAnswers }
  /** Rows of its tables in D1 that the sweep deletes. */
  readonly forgets?: readonly FeatureRetention[]
}

/** The number of a variable; an invalid one counts as the default. */
export function limitOf(text: string | undefined, standard: number): number {
  const number = Number(text)
  return text !== undefined && Number.isFinite(number) && number > 0 ? number : standard
}
