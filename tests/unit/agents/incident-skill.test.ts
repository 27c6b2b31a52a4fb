import { readFileSync } from 'node:fs'
import path from 'node:path'
import { tool, type ToolSet } from 'ai'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { createReflex } from '../../../src/standalone/index.ts'

const manifest: unknown = JSON.parse(readFileSync(path.join(import.meta.dirname, '../../../examples/skills/incident-open.json'), 'utf8'))
const inputs = { addresses: ['203.0.113.7'], since: '2026-03-09T06:00:00.000Z', summary: '5 failed logins {{since}}' }

/** Runs the skill with tools that note their calls. */
async function open(answers: Record<string, unknown>) {
  const calls: [string, unknown][] = []
  const noting = (name: string) =>
    tool({
      inputSchema: z.looseObject({}),
      execute: async (input) => {
        calls.push([name, input])
        const answer = answers[name]
        if (answer instanceof Error) throw answer
        return answer
      },
    })
  const names = ['collect_evidence', 'open_ticket', 'close_ticket', 'notify']
  const tools: ToolSet = Object.fromEntries(names.map((name) => [name, noting(name)]))
  const reflex = createReflex({ project: 'acme', roles: ['agent'], skills: [manifest], tools })
  const request = { from: 'model', roles: ['agent'], text: 'Addresses with 5 or more failed logins' } as const
  const result = await reflex.session().propose({ skill_id: 'incident.open', inputs, why: 'a burst' }, request)
  return { result, calls }
}
const answers = { collect_evidence: { lines: ['a line'] }, open_ticket: { ticket: 'INC-1' }, notify: { told: 'the log' }, close_ticket: {} }

test('an incident is evidence, then a ticket that holds it, then a word to whoever is on duty', async () => {
  const { result, calls } = await open(answers)
  expect(result).toMatchObject({ status: 'ok', outputs: { ticket: 'INC-1' } })
  expect(calls).toEqual([
    ['collect_evidence', { addresses: inputs.addresses }],
    ['open_ticket', { title: `SSH attack since ${inputs.since}`, details: inputs.summary, evidence: ['a line'] }],
    ['notify', { message: `INC-1 is open: ${inputs.summary}` }],
  ])
})

test('an incident that could not be reported is closed again', async () => {
  const { result, calls } = await open({ ...answers, notify: new Error('nobody is there') })
  expect(result).toMatchObject({ status: 'partial_failure', compensation: [{ tool: 'close_ticket', status: 'ok' }] })
  expect(calls.at(-1)).toEqual(['close_ticket', { ticket: 'INC-1', reason: 'nobody could be notified' }])
})

test('an incident whose ticket was never opened has none to close', async () => {
  const { result, calls } = await open({ ...answers, open_ticket: new Error('no desk') })
  expect(result).toMatchObject({ status: 'partial_failure', compensation: [] })
  expect(calls.map(([name]) => name)).toEqual(['collect_evidence', 'open_ticket'])
})
