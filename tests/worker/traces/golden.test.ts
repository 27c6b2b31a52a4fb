import { afterEach, describe, expect, test, vi } from 'vitest'
import { seal, type Recording } from '../../../src/features/replay/recording.ts'
import { triggerOf } from '../../golden/behaviours.ts'
import { scenarios } from '../../golden/scenarios.ts'
import { call } from '../../support/http.ts'
import { evict, freshScope, stubOf } from '../../support/scopes.ts'
import { behaviours } from '../../support/test-agents.ts'

const files = import.meta.glob<string>('../../golden/*.trace.json', { query: '?raw', import: 'default', eager: true })
/** Files of earlier versions of the schema, which nobody can record any more. */
const old_files = import.meta.glob<string>('../../golden/schema-*/*.trace.json', { query: '?raw', import: 'default', eager: true })
const nameOf = (path: string): string => /([^/]+)\.trace\.json$/.exec(path)?.[1] ?? ''
const same = { equivalent: true, divergences: [], unknown: [] }

/** Stacks name the paths of the machine that recorded them, and no replay reads them. */
async function withoutStacks(text: string): Promise<string> {
  const { sha256: _sha256, ...recording } = JSON.parse(text) as Recording
  const entries = recording.entries.map((entry) => ('stack' in entry ? { ...entry, stack: null } : entry))
  return `${JSON.stringify(await seal({ ...recording, entries }))}\n`
}

afterEach(() => {
  vi.restoreAllMocks()
})

/** `npm run golden` writes the files: they are what a server of that day recorded. */
describe.runIf(import.meta.env['VITE_GOLDEN'])('the golden traces', () => {
  test.each(Object.entries(scenarios))('record %s', async (name, { run }) => {
    const scope = freshScope()
    behaviours.set(scope, triggerOf(name))
    const trace_id = await run(scope)
    const { status, text } = await call(`/v1/traces/${trace_id}/export?scope=${encodeURIComponent(scope)}`)
    expect({ status, text }).toMatchObject({ status: 200 })
    await expect(await withoutStacks(text)).toMatchFileSnapshot(`../../golden/${name}.trace.json`)
  })
})

describe.skipIf(import.meta.env['VITE_GOLDEN'])('a golden trace', () => {
  test('is there for each kind of decision', () => {
    expect(Object.keys(files).map(nameOf).toSorted()).toEqual(Object.keys(scenarios).toSorted())
  })

  test.each([...Object.entries(files), ...Object.entries(old_files)])('%s replays to the same decisions', async (path, text) => {
    const { scope } = JSON.parse(text) as Recording
    behaviours.set(scope, triggerOf(nameOf(path)))
    const { body } = await call('/v1/replay', { body: text, type: 'application/json' })
    expect(body).toMatchObject(same)
    expect(body.compared).toBeGreaterThan(0)
    expect(body.replayed).toEqual(body.recorded)
  })
})

describe.skipIf(import.meta.env['VITE_GOLDEN'])('a trace like a golden one', () => {
  test.each(Object.entries(scenarios))('replays to the same decisions after an eviction: %s', async (name, { run }) => {
    const scope = freshScope()
    behaviours.set(scope, triggerOf(name))
    const trace_id = await run(scope)
    vi.restoreAllMocks()
    await evict(stubOf(scope))
    const { body } = await call(`/v1/traces/${trace_id}/replay?scope=${encodeURIComponent(scope)}`, { json: { mode: 'pinned' } })
    expect(body).toMatchObject(same)
  })
})
