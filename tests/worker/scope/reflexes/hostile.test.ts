import { describe, expect, test } from 'vitest'
import { sha256 } from '../../../../src/base/json.ts'
import { hostilePrograms } from '../../../support/hostile-programs.ts'
import { createVersion } from '../../../support/reflexes.ts'
import { entriesOf, freshScope, note, sendAndSettle, stubOf } from '../../../support/scopes.ts'
import { behaviours } from '../../../support/test-agents.ts'

/** A text that the database cannot hold as it is never becomes a reflex. */
const storable = hostilePrograms.filter(({ code }) => code.isWellFormed() && !code.includes('\0'))

describe('in the chain of a scope, G6', () => {
  test.each(storable)('$name does no harm', async ({ code, reason }) => {
    const [scope, other] = [freshScope(), freshScope()]
    for (const one of [scope, other]) behaviours.set(one, async () => ({ thought: true }))
    const { id } = await createVersion({ code, hash: await sha256(code) })
    await stubOf(scope).configure({ reflexes: [{ id }] }, 'ops')
    const [hit, beside] = await Promise.all([
      sendAndSettle(stubOf(scope), note(scope, 'first'), note(scope, 'second')),
      sendAndSettle(stubOf(other), note(other, 'meanwhile')),
    ])
    expect([...hit, ...beside].map(({ status }) => status)).toEqual(['completed', 'completed', 'completed'])
    const passed = await entriesOf(stubOf(scope), 'reflex-passed')
    // Output that survives is validated like any other: not an action, or not allowed in this
    // scope.
    const judged = ['refused', 'invalid_action'].map((why) => [why, why])
    const reasons = reason === 'fired' ? [[], ...judged] : [[reason, reason]]
    expect(reasons).toContainEqual(passed.map((entry) => entry.reason))
    expect(await sendAndSettle(stubOf(scope), note(scope, 'next'))).toMatchObject([{ status: 'completed' }])
  })
})
