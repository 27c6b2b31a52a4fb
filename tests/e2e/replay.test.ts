import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startServer, type LocalServer } from '../../cli/lib/local-server.ts'
import type { ReplayReport } from '../../src/features/replay/contract/replay.ts'
import type { Recording } from '../../src/features/replay/recording.ts'
import { ADMIN_KEY, ask, temporaryState } from './api.ts'
import { reflex } from './command-line.ts'

const FOLDER = 'tests/golden'
const state = await temporaryState()
const names = (await readdir(FOLDER, { recursive: true })).filter((name) => name.endsWith('.trace.json'))
const files = await Promise.all(
  names.map(async (name) => {
    const recording = JSON.parse(await readFile(path.join(FOLDER, name), 'utf8')) as Recording
    return { name: path.basename(name, '.trace.json'), at: path.join(FOLDER, name), recording }
  }),
)
let server: LocalServer

beforeAll(async () => {
  const golden = Object.fromEntries(files.map(({ name, recording }) => [recording.scope, name]))
  const vars = { REFLEX_ADMIN_KEY: ADMIN_KEY, REFLEX_MODEL: 'offline', GOLDEN: JSON.stringify(golden) }
  server = await startServer({ persist_to: state.directory, migrated: true, script: 'tests/support/golden-worker.ts', vars })
})
afterAll(async () => {
  await server?.stop()
  await state.remove()
})

test('a server that has never seen the golden traces replays all of them to the same decisions', async () => {
  const differing: unknown[] = []
  for (const { at, recording } of files) {
    const { equivalent, compared, divergences, unknown } = await ask<ReplayReport>(server.url, '/v1/replay', { body: recording })
    if (!equivalent || unknown.length > 0 || compared === 0) differing.push({ at, compared, divergences, unknown })
  }
  expect(differing).toEqual([])
  expect(files.length).toBeGreaterThanOrEqual(24)
})

test('the command line replays a golden file there', async () => {
  const env = { REFLEX_URL: server.url, REFLEX_KEY: ADMIN_KEY }
  const ran = await reflex(['trace', 'replay', path.join(FOLDER, 'plan-compensated.trace.json'), '--json'], { env })
  expect(ran).toMatchObject({ code: 0 })
  expect(JSON.parse(ran.stdout)).toMatchObject({ equivalent: true, unknown: [] })
})
