import { generateText } from 'ai'
import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { did } from '../../../support/reflex-chain.ts'
import { crash, entriesOf, freshScope, inObject, note, runAlarm, send, sendAndSettle, stubOf, until } from '../../../support/scopes.ts'
import { behaviours, effectGates } from '../../../support/test-agents.ts'
import { propose, skill, twoSteps } from '../../../support/two-step-skill.ts'

describe('a step that may have happened is undone', () => {
  const undone = async (step: Record<string, unknown>, key?: string) => {
    const scope = freshScope()
    const { plan } = twoSteps('x')
    const compensation = [{ when: 'partial_failure', tool: 'act', args: { text: 'undo' }, step: 0 }]
    const steps = [{ args: { text: 'hang' }, timeout_ms: 5000, ...step }]
    const id = await skill({ plan: { ...plan, ...(key === undefined ? {} : { idempotence_key: key }), steps, compensation } })
    return { scope, result: await propose(scope, id) }
  }

  test("where the tool's own time limit, shorter than the step's, cut it off", async () => {
    const { scope, result } = await undone({ tool: 'act_quickly' })
    expect(result).toMatchObject({ status: 'partial_failure', steps: [{ status: 'timeout' }], compensation: [{ status: 'ok' }] })
    expect(did(scope)).toEqual(['hang', 'undo'])
  })

  test('where it was cut off once, and failed when it was tried again', async () => {
    const retry = { max_attempts: 2, backoff_ms: 0 }
    const { scope, result } = await undone({ tool: 'act', args: { text: 'hang, then throw' }, timeout_ms: 100, retry }, 'again:{{what}}')
    expect(result).toMatchObject({ status: 'partial_failure', steps: [{ status: 'timeout' }], compensation: [{ status: 'ok' }] })
    expect(did(scope)).toEqual(['hang, then throw', 'hang, then throw', 'undo'])
  })
})

describe('a turn that is over while its plan is half done', () => {
  /**
   * A skill whose second step hangs until it is stopped; `undo` reverts the first, and the second
   * in case it happened.
   */
  const halfDone = () => {
    const { plan } = twoSteps('x')
    const steps = [...plan.steps.slice(0, 1), { tool: 'act', args: { text: 'hang' }, timeout_ms: 15_000 }]
    const undo = (step: number) => ({ when: 'partial_failure', tool: 'act', args: { text: `undo ${step}` }, step })
    return skill({ plan: { ...plan, idempotence_key: 'half:{{what}}', steps, compensation: [undo(0), undo(1)] } })
  }
  const UNDONE = ['first m', 'hang', 'undo 1', 'undo 0']

  async function begun(settings: Parameters<ReturnType<typeof stubOf>['configure']>[0] = {}) {
    const scope = freshScope()
    const stub = stubOf(scope)
    const id = await halfDone()
    await stub.configure(settings, 'ops')
    // The trigger hands its signal on to nobody.
    behaviours.set(scope, async (_, deps) => (await generateText({ model: deps.model, prompt: `propose ${id} twice`, maxRetries: 0 })).text)
    await send(stub, note(scope, 'go'))
    await until(async () => did(scope).length === 2, 'the second step has begun')
    return { scope, stub, id }
  }

  test('has it undone: where it is cancelled', async () => {
    const { scope, stub } = await begun()
    expect(await stub.cancel('enough', 'ops')).toMatchObject({ cancelled: true })
    await until(async () => (await entriesOf(stub, 'skill-applied')).length === 1, 'the run is at its end')
    expect(did(scope)).toEqual(UNDONE)
    expect(await entriesOf(stub, 'skill-applied')).toMatchObject([{ status: 'partial_failure', reason: 'cancelled' }])
  })

  test('where its time is up', async () => {
    const { scope, stub } = await begun({ turn_timeout_ms: 400, max_attempts: 1 })
    await until(async () => (await entriesOf(stub, 'skill-applied')).length === 1, 'the run is at its end')
    expect(did(scope)).toEqual(UNDONE)
  })

  test('where the process dies before it could', async () => {
    const { scope, stub } = await begun()
    await inObject(stub, async (state) => {
      // As a cancelled turn leaves it, if the process dies at once.
      state.storage.sql.exec(`UPDATE skill_runs SET status = 'stopping'`)
    })
    const fresh = await crash(scope)
    behaviours.set(scope, async () => null)
    await until(async () => (await entriesOf(fresh, 'skill-applied')).length === 1, 'the run is at its end')
    expect(did(scope)).toEqual(UNDONE)
    void stub
  })

  test('where it is interrupted, before what takes its place does it again', async () => {
    const { scope, stub } = await begun({ overlap: 'interrupt' })
    await send(stub, note(scope, 'more'))
    await until(async () => did(scope).length === 6, 'the second run has begun')
    expect(did(scope)).toEqual([...UNDONE, 'first m', 'hang'])
    await stub.cancel('enough', 'ops')
  })
})

describe('a turn whose skill run did not succeed', () => {
  async function afterRunOf(step: Record<string, unknown>, settings: Parameters<ReturnType<typeof stubOf>['configure']>[0] = {}) {
    const scope = freshScope()
    const stub = stubOf(scope)
    const id = await skill({ plan: { ...twoSteps('x').plan, steps: [{ tool: 'act', timeout_ms: 5000, ...step }] } })
    await stub.configure(settings, 'ops')
    behaviours.set(scope, async (_, deps) => {
      // The same proposal twice gets the same run.
      for (let times = 0; times < 2; times += 1) await generateText({ model: deps.model, prompt: `propose ${id}` })
      return { said: 'it was done' }
    })
    const [record] = await sendAndSettle(stub, note(scope, 'go'))
    return { stub, id, record }
  }

  test.each([{}, { on_tool_error: 'fail' } as const])('is partial, and named once, with the settings %j', async (settings) => {
    const { stub, id, record } = await afterRunOf({ args: { text: 'throw' } }, settings)
    const [applied] = await entriesOf(stub, 'skill-applied')
    const error = expect.stringContaining('the tool failed')
    const failed_runs = [{ run_id: applied?.['run_id'], skill_id: id, status: 'failed', error }]
    expect(record).toMatchObject({ status: 'completed', attempts: 1, outcome: { by: 'turn', partial: true, failed_runs } })
    expect(record?.outcome).not.toHaveProperty('failed_calls')
    expect(await entriesOf(stub, 'turn-ended')).toMatchObject([{ status: 'result', failed_runs }])
  })

  test('is whole where the run succeeded', async () => {
    const { record } = await afterRunOf({ args: { text: 'done' } })
    expect(record?.outcome).not.toHaveProperty('partial')
    expect(record?.outcome).not.toHaveProperty('failed_runs')
  })
})

describe('a run that nobody waits for', () => {
  const keyed = { plan: { ...twoSteps('x').plan, idempotence_key: 'alone:{{what}}' } }

  /** Its object dies in its first step, while the registry is away; `before` the death. */
  async function cutOffWithoutRegistry(before: (stub: ReturnType<typeof stubOf>) => Promise<unknown>): Promise<string> {
    const scope = freshScope()
    const id = await skill(keyed)
    const gate = Promise.withResolvers<void>()
    effectGates.set(scope, gate.promise)
    const answer = propose(scope, id).catch(() => null)
    await until(async () => did(scope).length === 1, 'the first step has begun')
    expect(await inObject(stubOf(scope), ({ storage }) => storage.getAlarm())).not.toBeNull()
    await before(stubOf(scope))
    await env.DB.exec('ALTER TABLE artifact_versions RENAME TO artifact_versions_away')
    try {
      const stub = await crash(scope)
      effectGates.delete(scope)
      gate.resolve()
      await answer
      await until(async () => (await entriesOf(stub, 'skills-degraded')).length > 0, 'it was tried')
    } finally {
      await env.DB.exec('ALTER TABLE artifact_versions_away RENAME TO artifact_versions')
    }
    return scope
  }

  test('continues with the copy on disk while the registry is unavailable', async () => {
    const scope = await cutOffWithoutRegistry(async () => {})
    await until(async () => (await entriesOf(stubOf(scope), 'skill-applied')).length === 1, 'the run is at its end')
    expect(did(scope)).toEqual(['first x', 'first x', 'second x'])
  })

  test('wakes the object by itself, and again where it could not be resumed', async () => {
    const scope = await cutOffWithoutRegistry((stub) =>
      inObject(stub, ({ storage }) => {
        storage.sql.exec('DELETE FROM artifacts')
        storage.sql.exec(`DELETE FROM state WHERE key = 'skill_copy'`)
      }),
    )
    expect(await entriesOf(stubOf(scope), 'skill-applied')).toEqual([])
    await scheduler.wait(50)
    await runAlarm(stubOf(scope))
    await until(async () => (await entriesOf(stubOf(scope), 'skill-applied')).length === 1, 'the run is at its end')
    expect(did(scope)).toEqual(['first x', 'first x', 'second x'])
  })
})
