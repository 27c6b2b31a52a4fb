import { describe, expect, test } from 'vitest'
import { did, write } from '../../../support/reflex-chain.ts'
import { freshScope, note, send, sendAndSettle, stubOf, until } from '../../../support/scopes.ts'
import { skill, twoSteps } from '../../../support/two-step-skill.ts'

/** A skill whose first step fails once, and is tried again so much later. */
const busy = (backoff_ms: number) => {
  const [first, second] = twoSteps('x').plan.steps
  const once = { ...first, args: { text: 'busy once' }, retry: { max_attempts: 2, backoff_ms } }
  return skill({ plan: { ...twoSteps('x').plan, steps: [once, second] } })
}

/**
 * A scope whose reflex proposes the skill for notes that begin with `plan `, and otherwise does
 * `otherwise`.
 */
async function planning(skill_id: string, { otherwise, how = '' }: { otherwise: string; how?: string }) {
  const scope = freshScope()
  const { id } = await write(`const { text } = context.event
    if (text.startsWith('plan ')) return { action_type: 'run_skill', skill_id: ${JSON.stringify(skill_id)}, inputs: { what: text.slice(5) }${how} }
    return ${otherwise}`)
  await stubOf(scope).configure({ reflexes: [{ id }], goal_labels: ['twice'] }, 'ops')
  return { scope, stub: stubOf(scope) }
}

describe("while a reflex's plan runs", () => {
  test('another action under its key waits for its end, and is not carried out again', async () => {
    const otherwise = "{ action_type: 'call_tool', tool: 'act', args: { text }, idempotence_key: text === 'other' ? 'other' : 'k' }"
    const { scope, stub } = await planning(await busy(500), { otherwise, how: ", idempotence_key: 'k'" })
    const records = await sendAndSettle(stub, note(scope, 'plan a'), note(scope, 'same key'), note(scope, 'other'))
    expect(records.map(({ outcome }) => outcome)).toMatchObject([{ by: 'reflex' }, { by: 'reflex', reused: true }, { by: 'reflex' }])
    expect(did(scope).indexOf('other')).toBeLessThan(2)
    expect(did(scope).filter((text) => text !== 'other')).toEqual(['busy once', 'busy once', 'second a'])
  })

  test('another run of its skill that is asked for meanwhile begins at its end', async () => {
    const { scope, stub } = await planning(await busy(500), { otherwise: 'null' })
    const sent = await send(stub, note(scope, 'plan a'))
    await until(async () => did(scope).length === 1, 'the plan has begun')
    sent.push(...(await send(stub, note(scope, 'plan b'), note(scope, 'plan c'))))
    expect(await stub.outcomes(sent, 15_000)).toMatchObject({ settled: true })
    expect(did(scope).filter((text) => text !== 'busy once')).toEqual(['second a', 'second b', 'second c'])
  })
})
