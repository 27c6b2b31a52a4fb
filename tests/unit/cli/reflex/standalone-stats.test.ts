import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fileStatistics } from '../../../../cli/reflex/stats.ts'
import { standaloneTrace } from '../../../../cli/reflex/trace/standalone.ts'
import { fileStorage } from '../../../../src/standalone/node/index.ts'

let folder: string
let file: string
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'reflex-'))
  file = path.join(folder, 'agent.reflex')
  const storage = fileStorage(file)
  const log = (at: string, kind: string, fields: object) =>
    storage.log.append({ at: `2026-11-${at}:00:00.000Z`, kind, trace_id: 'a'.repeat(32), ...fields })
  const run = (at: string, skill_id: string, status: string) => {
    log(at, 'skill-decided', { skill_id, decision: { verdict: 'allow' } })
    log(at, 'skill-started', { skill_id })
    log(at, 'skill-applied', { skill_id, status, duration_ms: 10 })
  }
  run('20T05', 'deploy', 'ok')
  run('20T06', 'deploy', 'failed')
  run('21T05', 'deploy', 'ok')
  run('21T06', 'refund', 'ok')
  log('21T07', 'model-called', { model: 'gpt-5', usage: { input_tokens: 100, output_tokens: 20, cost_usd: 0.5, model_calls: 1 } })
  log('21T07', 'model-called', { model: 'unknown', usage: { input_tokens: 10, output_tokens: 2, cost_usd: null, model_calls: 1 } })
  storage.close()
})
afterAll(() => rm(folder, { recursive: true }))

test('the log of a standalone process gives the metrics of its skills', async () => {
  expect(await fileStatistics(file, 'skill.calls', { by: 'skill', bucket: 'day' })).toMatchObject({
    unit: 'count',
    series: [
      {
        label: 'deploy',
        total: 3,
        points: [
          { at: '2026-11-20T00:00:00.000Z', value: 2 },
          { at: '2026-11-21T00:00:00.000Z', value: 1 },
        ],
      },
      { label: 'refund', total: 1 },
    ],
  })
  const total = async (metric: string, range = {}) => (await fileStatistics(file, metric, { bucket: 'all', ...range })).series
  expect(await total('skill.success_rate')).toMatchObject([{ label: null, total: 0.75 }])
  expect(await total('skills.proposals', { since: '2026-11-21T00:00:00Z', until: '2026-11-21T06:00:00Z' })).toMatchObject([{ total: 1 }])
})

test('the numbers of a file begin with its first entry', async () => {
  expect(await fileStatistics(file, 'skill.calls', { bucket: 'day' })).toMatchObject({ since: '2026-11-20T05:00:00.000Z' })
})

test('a trace of a file counts its model calls, their tokens and their cost, which is unknown if one is', async () => {
  const trace = await standaloneTrace(file, 'a'.repeat(32))
  expect(trace.usage).toEqual({ input_tokens: 110, output_tokens: 22, cost_usd: null, model_calls: 2 })
  expect(trace.root.children.filter(({ kind }) => kind === 'model')).toMatchObject([
    { name: 'chat gpt-5', attributes: { 'gen_ai.usage.input_tokens': 100, 'reflex.cost_usd': 0.5 } },
    { name: 'chat unknown' },
  ])
})

test('it has no metric of turns, events and reflexes', async () => {
  for (const metric of [
    'turns',
    'events.accepted',
    'reflex.runs',
    'skill.delta_cost_usd',
    'skill.last_ci_pass',
    'skills.active',
    'toString',
  ])
    await expect(fileStatistics(file, metric, { bucket: 'all' })).rejects.toThrow(`does not have the metric ${metric}`)
  await expect(fileStatistics(file, 'skill.calls', { by: 'scope', bucket: 'all' })).rejects.toThrow('no series by scope')
})
