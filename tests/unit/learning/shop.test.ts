import { describe, expect, test } from 'vitest'
import type { JsonFields } from '../../../src/base/json.ts'
import { atOnce } from '../../../src/base/steps.ts'
import type { Action } from '../../../src/contract/action.ts'
import { actsOfAction } from '../../../src/features/learning/episodes/decided.ts'
import type { EpisodeAct } from '../../../src/features/learning/episode.ts'
import { learnReflexes } from '../../../src/features/learning/reflexes/learn.ts'
import { foreseeInSteps, foreseenFor, type Fires } from '../../../src/features/learning/run/foresee.ts'
import { QuickJsSandbox } from '../../../src/reflexes/quickjs-sandbox.ts'
import { sampleContext } from '../../../src/reflexes/reflex-context.ts'
import { runReflex } from '../../../src/reflexes/run-reflex.ts'
import { seededRandom } from '../../support/random.ts'
import { sandboxModule } from '../../support/sandbox-module.ts'
import { call, history, reply } from './histories.ts'

const sandbox = new QuickJsSandbox(sandboxModule, { now: () => 0 })
const KINDS = ['complaint', 'complaint', 'delivered', 'paid']
const CHATTER = ['thanks, it is here', 'hello there', 'nice shop', 'ok bye', 'my cat loves the box']

/** Late orders below a limit are refunded, others escalated. A claim by mail says its amount. */
function order(index: number): [{ type: string } & JsonFields, EpisodeAct[]] {
  const random = seededRandom(index + 1)
  const among = (list: readonly string[]): string => list[Math.floor(random() * list.length)] ?? ''
  const [id, amount, days] = [`R-${10_000 + index}`, Math.floor(random() * 10_000), Math.floor(random() * 10)]
  const decided = amount < 5000 ? call('refund', { order: id, amount }) : call('escalate', { order: id, reason: 'amount' })
  const kind = among(KINDS)
  const said = random() < 0.5 ? 'Done.' : `All is settled for ${id}.`
  const done = [...decided, ...reply(said)]
  const mail = random()
  if (mail < 0.1) return [{ type: 'mail', text: `order ${id} of ${amount} cents came late` }, done]
  if (mail < 0.4) return [{ type: 'mail', text: among(CHATTER) }, []]
  return [{ type: 'order', kind, order: id, amount, days }, kind === 'complaint' && days >= 3 ? done : []]
}

describe('a shop whose model speaks in varied words beside its calls', () => {
  const episodes = history(1800, order)
  const learned = learnReflexes(episodes)
  const fires: Fires = ({ key, code }, saw) => runReflex(sandbox, { hash: key, code }, { ...sampleContext, ...saw }).action

  test('is decided by what was learned on newer orders as its model decides, or left to it', () => {
    const names = learned.reflexes.flatMap((reflex) => reflex.names)
    expect(names).toEqual(expect.arrayContaining(['refund', 'escalate', 'nothing']))
    const newer = history(2100, order).slice(1800)
    const took = { refund: 0, escalate: 0, ignore: 0 }
    for (const { saw, acts } of newer) {
      const programs = learned.reflexes.map(({ id, code }) => ({ key: id, code }))
      const action = programs.reduce<Action | null>((found, program) => found ?? fires(program, saw), null)
      if (action === null) continue
      const decided = actsOfAction(action).map(({ name, input }) => ({ name, input }))
      expect(decided).toEqual(acts.filter(({ kind }) => kind === 'tool').map(({ name, input }) => ({ name, input })))
      took[(decided[0]?.name ?? 'ignore') as keyof typeof took] += 1
    }
    expect(Math.min(took.refund, took.escalate)).toBeGreaterThan(20)
    expect(took.ignore).toBeGreaterThan(100)
  })

  test('has foreseen comparisons of refunds, which a certificate begins with', () => {
    const foresights = atOnce(foreseeInSteps(episodes, {}, { fires, lessons: new Map() }))
    const foreseen = learned.reflexes.map((reflex) => foreseenFor(reflex, { episodes, foresights, fair: () => true }))
    const refunds = foreseen.flatMap((one) => one?.acts ?? []).filter(({ act }) => act === 'refund')
    expect(refunds.length).toBeGreaterThan(0)
    for (const { n, k } of refunds) expect(k).toBe(n)
  })
})
