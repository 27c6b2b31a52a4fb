import type { SettingsPatch } from '../../src/contract/settings/settings.ts'
import { logOf, note, stubOf, until } from './scopes.ts'
import { effectGates } from './test-agents.ts'

/** Sends two events: the second arrives while the turn on the first calls a tool. */
export async function overlapping(scope: string, overlap: SettingsPatch['overlap']): Promise<{ first: string; second: string }> {
  await stubOf(scope).configure({ overlap }, 'a test')
  const gate = Promise.withResolvers<void>()
  effectGates.set(scope, gate.promise)
  const [first, second] = [note(scope, 'first'), note(scope, 'second')]
  await stubOf(scope).accept([first], 'http')
  await until(async () => (await logOf(stubOf(scope))).some(({ kind }) => kind === 'effect-started'), 'the turn runs')
  await stubOf(scope).accept([second], 'http')
  gate.resolve()
  await stubOf(scope).outcomes([first.id, second.id], 10_000)
  return { first: first.meta.trace_id, second: second.meta.trace_id }
}
