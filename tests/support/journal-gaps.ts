import { describe, expect, test } from 'vitest'
import { write } from './reflex-chain.ts'
import { live, type Place } from './crash-at-write.ts'
import { propose, skill, twoSteps } from './two-step-skill.ts'
import { call, scopePath } from './http.ts'
import { faultsOf, recordOf, rowsOf, type RunLife } from './run-record.ts'
import { freshScope, note, stubOf, until } from './scopes.ts'
import { ask, behaviours } from './test-agents.ts'

const act = (text: string, more: object = {}) => ({ tool: 'act', args: { text }, timeout_ms: 5000, ...more })
const undo = (step: number, text = `undo ${step}`) => ({ when: 'partial_failure', tool: 'act', args: { text }, step })
const { plan, signature, effects: none } = twoSteps('x')

/** Every plan writes its output to the blackboard. */
const bound = {
  signature: { ...signature, blackboard_bindings: { inputs: {}, outputs: { done: 'work.done' } } },
  effects: { ...none, writes: ['work.done'] },
}
const plainly: Record<string, object> = {
  'of plain steps': { steps: [act('first'), act('second')], compensation: [undo(0), undo(1)] },
}
const plans: Record<string, object> = {
  ...plainly,
  'whose first step is tried again': {
    steps: [act('busy once', { retry: { max_attempts: 2, backoff_ms: 1 } }), act('second')],
    compensation: [undo(0)],
  },
  'whose last step fails': { steps: [act('first'), act('second'), act('throw')], compensation: [undo(0), undo(1)] },
  'whose compensation fails': { steps: [act('first'), act('second'), act('throw')], compensation: [undo(0), undo(1, 'throw')] },
  'that spends its budget': { steps: [act('dear'), act('second')], compensation: [undo(0)] },
}

/** Requests a run in a scope that may die at any time, until the scope has a record of it. */
type Way = {
  /** All of them unless given. */
  plans?: Record<string, object>
  changes?: object
  prepare?: (scope: string, id: string) => Promise<unknown>
  ask: (scope: string, id: string) => Promise<unknown>
}

const runsOf = (scope: string) => rowsOf<{ run_id: string }>(scope, 'SELECT run_id FROM skill_runs')

/** An event, sent until it is taken, and until it has an outcome. */
async function ended(scope: string): Promise<unknown> {
  const event = note(scope, 'x')
  const sent = () => call(scopePath(scope, '/events'), { json: event })
  await until(async () => (await sent()).status === 202, 'the event is accepted')
  const record = () => call(scopePath(scope, `/events/${event.id}`))
  return until(async () => (await record()).body?.ended_at as string | null | undefined, 'the event has its outcome')
}

export const overHttp: Way = {
  ask: (scope, id) => until(async () => (await propose(scope, id).catch(() => null)) ?? (await runsOf(scope)).length > 0, 'it has begun'),
}

/** The other caller that requests runs. */
export const askers: Record<string, Way> = {
  'that somebody approves': {
    plans: plainly,
    changes: { policy: { allow_roles: ['publisher'], needs_approval_if: ['true'], self_approval: true } },
    async ask(scope, id) {
      const parked = () => rowsOf<{ approval_id: string }>(scope, 'SELECT approval_id FROM parked_runs')
      await until(async () => (await propose(scope, id).catch(() => null)) ?? (await parked()).length > 0, 'it is parked')
      const approval_id = await until(async () => {
        await stubOf(scope)
          .poke()
          .catch(() => null)
        return (await call(`/v1/approvals?scope=${encodeURIComponent(scope)}`)).body.items[0]?.id as string | undefined
      }, 'somebody can see it')
      await call(`/v1/approvals/${approval_id}/approve`, { json: {} })
      await until(async () => (await runsOf(scope)).length > 0, 'it has begun')
    },
  },
  'that a reflex asks for': {
    plans: plainly,
    async prepare(scope, id) {
      const { id: reflex } = await write(`return { action_type: 'run_skill', skill_id: ${JSON.stringify(id)}, inputs: { what: 'x' } }`)
      await stubOf(scope).configure({ reflexes: [{ id: reflex }], goal_labels: ['twice'] }, 'ops')
    },
    ask: ended,
  },
  "that a turn's model proposes": {
    plans: plainly,
    prepare: async (scope, id) => behaviours.set(scope, async (_, deps) => ({ said: await ask(deps, `propose ${id} twice`) })),
    ask: ended,
  },
}

async function run({ way, id, place }: { way: Way; id: string; place: Place | null }): Promise<RunLife> {
  const scope = freshScope()
  await way.prepare?.(scope, id)
  const life = await live(scope, place)
  await way.ask(scope, id)
  if (place) await until(async () => life.buried, 'it has died')
  return recordOf(scope, life)
}

/**
 * A test per plan and way, with and without a key: the scope dies at each write of its journal.
 */
export function comeToOneEnd(askers: Record<string, Way>): void {
  describe.each(Object.entries(askers))('a run %s', (_, way) => {
    describe.each(Object.entries(way.plans ?? plans))('of a plan %s', (_name, shape) => {
      test.each([
        ['without a key', {}],
        ['with a key', { idempotence_key: 'twice:{{what}}' }],
      ])('%s comes to one end wherever the scope dies', { timeout: 120_000 }, async (_key, key) => {
        const id = await skill({ ...bound, ...way.changes, plan: { ...plan, ...shape, ...key } })
        const calm = await run({ way, id, place: null })
        expect(calm.life.writes).toBeGreaterThan(8)
        // A single place suffices to show that the side of a write makes no difference if nothing
        // else happens.
        const sides: Place['side'][] = !way.plans && shape === plainly['of plain steps'] ? ['before', 'after'] : ['before']
        const places = Array.from({ length: calm.life.writes }, (__, index) => index + 1).flatMap((at) =>
          sides.map((side) => ({ at, side })),
        )
        expect(await faults({ places, keyed: 'idempotence_key' in key, calm, live: (place) => run({ way, id, place }) })).toEqual([])
      })
    })
  })
}

type Deaths = { places: Place[]; keyed: boolean; calm: RunLife; live: (place: Place) => Promise<RunLife> }

/** Runs a few of these deaths at a time. */
async function faults({ places, keyed, calm, live: die }: Deaths): Promise<string[]> {
  const found: string[] = []
  const waiting = [...places]
  const some = async (): Promise<void> => {
    for (let place = waiting.shift(); place; place = waiting.shift()) {
      const { at, side } = place
      const ran = await die(place).catch((error: unknown) => String(error))
      const wrong = typeof ran === 'string' ? [ran] : faultsOf(ran, { calm, keyed })
      found.push(...wrong.map((fault) => `${side} write ${at}: ${fault}`))
    }
  }
  await Promise.all(Array.from({ length: 6 }, some))
  return found
}
