/// <reference types="@cloudflare/vitest-plugin/types" />
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import type { Env } from '../src/env.ts'

export const stubOf = (scope: string) => (env as Env).SCOPE.getByName(scope)
export type Stub = ReturnType<typeof stubOf>

/** Runs work inside the object, with its storage. */
export const inObject = <Result>(stub: Stub, work: (state: DurableObjectState) => Result | Promise<Result>): Promise<Result> =>
  runInDurableObject(stub as never, (_, state) => work(state))
export const evict = (stub: Stub): Promise<void> => evictDurableObject(stub as never)
export const runAlarm = (stub: object): Promise<boolean> => runDurableObjectAlarm(stub as never)

export const CRASH = 'crashed by a test'

/** Aborts the object in the middle of its work; the returned stub finds it rebuilt from disk. */
export async function crash(scope: string): Promise<Stub> {
  await inObject(stubOf(scope), (state) => state.abort(CRASH)).catch(() => {})
  // Stubs that saw the crash are broken for good.
  return stubOf(scope)
}

const MOST_MS = 15_000

/** Looks again and again until it finds a value. Throws after 15 s. */
export async function until<Value>(look: () => Promise<Value>, what: string): Promise<Exclude<Value, null | undefined | false | ''>> {
  const end = performance.now() + MOST_MS
  for (;;) {
    const value = await look()
    if (value) return value as Exclude<Value, null | undefined | false | ''>
    if (performance.now() > end) throw new Error(`waited in vain until ${what}`)
    await scheduler.wait(10)
  }
}
