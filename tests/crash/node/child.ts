import { appendFileSync } from 'node:fs'
import { tool } from 'ai'
import { z } from 'zod'
import { createReflex, fileStorage } from '../../../src/standalone/node/index.ts'
import { threeNotes } from './three-notes.ts'

/**
 * A process that proposes a skill (and approves it if gated) or resumes an earlier run, and dies at
 * one of the places where something has become durable.
 */
const [file = '', effects = '', mode = '', keyed = '', dies_at = ''] = process.argv.slice(2)

let places = 0
function place(): void {
  places += 1
  if (String(places) === dies_at) process.kill(process.pid, 'SIGKILL')
}

const storage = fileStorage(file)
const { journal, runs, approvals } = storage
const around =
  <Args extends unknown[]>(write: (...args: Args) => Promise<void>) =>
  async (...args: Args) => {
    place()
    await write(...args)
    place()
  }

const reflex = createReflex({
  project: 'acme/notes',
  roles: ['writer'],
  skills: [threeNotes({ keyed: keyed !== 'unkeyed', gated: keyed === 'gated' })],
  storage: {
    ...storage,
    journal: { ...journal, begin: around((...args) => journal.begin(...args)), end: around((...args) => journal.end(...args)) },
    approvals: {
      ...approvals,
      approve(id) {
        place()
        const run = approvals.approve(id)
        place()
        return run
      },
    },
    runs: { ...runs, begin: around((record) => runs.begin(record)), end: around((...args) => runs.end(...args)) },
  },
  tools: {
    'notes.save': tool({
      inputSchema: z.object({ title: z.string() }),
      execute: async ({ title }, options) => {
        const { idempotence_key = null } = options as { idempotence_key?: string | null }
        place()
        appendFileSync(effects, `${JSON.stringify({ title, key: idempotence_key })}\n`)
        place()
        return { id: title }
      },
    }),
  },
})

const proposal = { skill_id: 'note.three', inputs: { title: 'milk' }, why: 'asked to' }
const propose = async () => {
  const result = await reflex.session().propose(proposal, { from: 'caller', roles: ['writer'], text: 'a note' })
  return result.approval_id === null ? result : reflex.approvals.approve(result.approval_id)
}
const results = mode === 'resume' ? await reflex.resume() : [await propose()]
const decided = reflex.log.entries().filter(({ kind }) => kind === 'skill-decided').length
process.stdout.write(
  JSON.stringify({
    results,
    places,
    unfinished: runs.unfinished().length,
    waiting: approvals.waiting().length,
    approved: approvals.approved().length,
    decided,
  }),
)
