import { describe, expect, test } from 'vitest'
import type { Recording } from '../../../src/replay/recording.ts'
import { scenarios } from '../../golden/scenarios.ts'
import { call } from '../../support/http.ts'
import { freshScope } from '../../support/scopes.ts'
import { behaviours } from '../../support/test-agents.ts'

const files = import.meta.glob<string>('../../golden/*.trace.json', { query: '?raw', import: 'default', eager: true })
const nameOf = (path: string): string => /([^/]+)\.trace\.json$/.exec(path)?.[1] ?? ''
const nothing = async () => null

/** `npm run golden` writes the files: they are what a server of that day recorded. */
describe.runIf(import.meta.env['VITE_GOLDEN'])('the golden traces', () => {
  test.each(Object.entries(scenarios))('record %s', async (name, { behaviour = nothing, run }) => {
    const scope = freshScope()
    behaviours.set(scope, behaviour)
    const trace_id = await run(scope)
    const { status, text } = await call(`/v1/traces/${trace_id}/export?scope=${encodeURIComponent(scope)}`)
    expect({ status, text }).toMatchObject({ status: 200 })
    await expect(`${text}\n`).toMatchFileSnapshot(`../../golden/${name}.trace.json`)
  })
})

describe.skipIf(import.meta.env['VITE_GOLDEN'])('a golden trace', () => {
  test('is there for each kind of decision', () => {
    expect(Object.keys(files).map(nameOf).toSorted()).toEqual(Object.keys(scenarios).toSorted())
  })

  test.each(Object.entries(files))('%s replays to the same decisions', async (path, text) => {
    const { scope } = JSON.parse(text) as Recording
    behaviours.set(scope, scenarios[nameOf(path)]?.behaviour ?? nothing)
    const { body } = await call('/v1/replay', { body: text, type: 'application/json' })
    expect(body).toMatchObject({ equivalent: true, divergences: [], unknown: [] })
    expect(body.compared).toBeGreaterThan(0)
    expect(body.replayed).toEqual(body.recorded)
  })
})
