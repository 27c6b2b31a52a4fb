import { expect } from 'vitest'
import type { Episode } from '../../../src/features/learning/episode.ts'
import { learnReflexes, type ReflexLearnOptions } from '../../../src/features/learning/reflexes/learn.ts'
import { QuickJsSandbox } from '../../../src/reflexes/quickjs-sandbox.ts'
import { sampleContext } from '../../../src/reflexes/reflex-context.ts'
import { runReflex } from '../../../src/reflexes/run-reflex.ts'
import { checkReflex } from '../../../src/reflexes/static-check.ts'
import { sandboxModule } from '../../support/sandbox-module.ts'

const sandbox = new QuickJsSandbox(sandboxModule)

/** The actions of all learned reflexes on an event, as the scope would run them. */
export const actions = async (episodes: Episode[], event: Episode, options: ReflexLearnOptions = {}): Promise<unknown[]> =>
  (await actionsOnEach(episodes, [event], options))[0] ?? []

/** The same on several events. */
export async function actionsOnEach(episodes: Episode[], events: Episode[], options: ReflexLearnOptions = {}): Promise<unknown[][]> {
  const found = events.map((): unknown[] => [])
  for (const { code } of learnReflexes(episodes, options).reflexes) {
    const checked = await checkReflex(code)
    expect(checked).toMatchObject({ ok: true })
    for (const [index, { saw }] of events.entries()) {
      const run = runReflex(sandbox, { code, hash: checked.ok ? checked.hash : '' }, { ...sampleContext, ...saw })
      expect(['fired', 'null']).toContain(run.reason)
      if (run.action) found[index]?.push(run.action)
    }
  }
  return found
}
