import { env } from 'cloudflare:workers'
import { describe, expect, test, vi } from 'vitest'
import { skills } from '../../../src/artifacts/kinds.ts'
import { sweep } from '../../support/sweep.ts'
import { MANY_VERSIONS } from '../../../src/features/statistics/store/evict-skills.ts'
import { saveSkillTest, findSkillTest } from '../../../src/store/artifacts/skill-tests.ts'
import { writeStatistics } from '../../../src/features/statistics/store/write.ts'
import { call, keyFor } from '../../support/http.ts'
import { freshId } from '../../support/reflexes.ts'
import { copyVersion, putVersion } from '../../support/skills.ts'

const DAY = 86_400_000
/** The start of an hour, three weeks after the skills became active at 2 ms. */
const NOW = 21 * DAY
const mined = { provenance: { mined_from_traces: ['a'.repeat(32)] } }
const byPeople = { provenance: {} }
const active = (changes: Record<string, unknown> = mined) => putVersion({ changes, state: 'active' })
const used = (id: string, day: number, values: Record<string, number>, scope = 'default') =>
  writeStatistics(env.DB, scope, [{ family: 'skill', bucket: 'day', start: day * DAY, values: { [id]: values } }])
const stateOf = async ({ id, version }: { id: string; version: string }) => {
  const { state, state_reason } = (await skills.find(env.DB, id, version))!
  return [state, state_reason]
}

describe('the sweep deprecates a mined skill', () => {
  test('that was used fewer than five times in the last week, on any scope', async () => {
    const [idle, busy, once] = [await active(), await active(), await active()]
    await used(busy.id, 15, { calls: 2 })
    await used(busy.id, 20, { calls: 2, reused: 1 }, 'elsewhere')
    await used(once.id, 20, { calls: 1 }, 'third')
    await used(idle.id, 5, { calls: 90 }, 'long-ago')
    await sweep(env, NOW)
    expect(await stateOf(busy)).toEqual(['active', null])
    const reason = 'in the last week, and at least 5 uses are needed'
    expect(await stateOf(idle)).toEqual(['deprecated', `evicted: it was used 0 times ${reason}`])
    expect(await stateOf(once)).toEqual(['deprecated', `evicted: it was used once ${reason}`])
    const { series } = (await call('/v1/stats?metric=skills.evictions&bucket=all')).body
    expect(series[0].total).toBe(2)
  })

  test('not within its first two weeks, and not one that a person wrote', async () => {
    const young = await active()
    const written = await active(byPeople)
    await sweep(env, 14 * DAY)
    expect(await stateOf(young)).toEqual(['active', null])
    await sweep(env, NOW)
    expect([await stateOf(young), await stateOf(written)]).toMatchObject([
      ['deprecated', expect.any(String)],
      ['active', null],
    ])
  })

  test('that failed its tests twice in a row', async () => {
    const failing = await active()
    const { id, version, hash } = failing
    const report = await findSkillTest(env.DB, { skill_id: id, version, hash })
    if (!report) throw new Error('there is no report')
    const fail = () => saveSkillTest(env.DB, { ...report, passed: false }, { by: 'alice', now: 3 })
    await fail()
    await sweep(env, DAY)
    expect(await stateOf(failing)).toEqual(['active', null])
    await fail()
    await sweep(env, DAY)
    expect(await stateOf(failing)).toEqual(['deprecated', 'evicted: it failed its tests 2 times in a row'])
  })

  test('once an hour', async () => {
    const idle = await active()
    await sweep(env, NOW + 61_000)
    expect(await stateOf(idle)).toEqual(['active', null])
  })
})

test('many active skills of one owner are reported', async () => {
  const scopes = [freshId('crowd')]
  const key = await keyFor(['viewer'], scopes)
  await copyVersion(
    await putVersion({ changes: byPeople, state: 'active', scopes, owner: 'crowd', owner_id: freshId('crowd') }),
    MANY_VERSIONS,
  )
  const warned = vi.spyOn(console, 'warn').mockImplementation(() => {})
  await sweep(env, NOW)
  expect(warned.mock.calls.map(String)).toContainEqual(expect.stringContaining(`more than ${MANY_VERSIONS} active versions`))
  warned.mockRestore()
  expect((await call('/health/detailed', { key })).body.skills).toMatchObject({
    active: expect.any(Number),
    failed: 1,
    warning: expect.stringContaining('deprecate some'),
  })
})
