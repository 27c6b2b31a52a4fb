import type { BareClient, ReflexClient } from '../clients.ts'
import type { Figure, Side } from '../figure.ts'
import { median } from '../figure.ts'
import { connect, exchange, type Answers } from '../load.ts'

type Kind = 'ack' | 'turn' | 'reply' | 'reflex'

const acknowledged: Answers = ({ type, id }, sent) => type === 'ack' && id === sent
const ended: Answers = ({ entries = [] }, sent) =>
  entries.some(({ kind, event_ids }) => kind === 'event-ended' && event_ids?.includes(sent) === true)
const replied: Answers = ({ type, event_id }, sent) => type === 'delta' && event_id === sent
const echoed: Answers = ({ id }, sent) => id === sent

const answerOf: Record<Kind, Answers> = { ack: acknowledged, turn: ended, reply: replied, reflex: ended }
const REFLEX = 'bench-reply'
const code = `function reflex(context) {
  return { action_type: 'reply', content: 'heard ' + context.event.id }
}`
/** A chat whose condition is never true: each message gets a turn, which says no. */
export const SAYS_NO = { instructions: 'Answer.', when: 'total < 0', context_limit: 100 }

export async function replyByReflex(reflex: ReflexClient, ...scopes: string[]): Promise<void> {
  await reflex.register({ id: REFLEX, code })
  for (const scope of scopes) await reflex.configure(scope, { reflexes: [{ id: REFLEX, rate: 60_000 }] })
}

const MESSAGES = 300

function figureOf(kind: Kind, figure: Pick<Figure, 'name' | 'what' | 'target' | 'worst'>): Figure {
  return {
    ...figure,
    unit: 'ms',
    async ours(reflex, { count }) {
      const scope = `bench-${kind}`
      if (kind === 'turn') await reflex.configure(scope, SAYS_NO)
      if (kind === 'reply' || kind === 'reflex') await replyByReflex(reflex, scope)
      const side = medianOn(await connect(await reflex.socketUrl(scope)), answerOf[kind], count(MESSAGES))
      return {
        ...side,
        async close() {
          await side.close()
          await reflex.quiet(scope)
        },
      }
    },
    bare: async ({ bare, count }) => medianOn(await echo(bare, kind), echoed, count(MESSAGES)),
  }
}

const echo = (bare: BareClient, kind: Kind): Promise<WebSocket> => connect(bare.socketUrl(kind))

/** Sends one message at a time: the next is sent when the one before is answered. */
function medianOn(connection: WebSocket, answers: Answers, messages: number): Side & { close: () => Promise<void> } {
  return {
    async measure() {
      const times: number[] = []
      for (let message = 0; message < messages; message += 1) times.push(await exchange(connection, answers))
      return median(times)
    },
    close: async () => connection.close(),
  }
}

export const socket = figureOf('ack', {
  name: 'socket',
  what: 'one WebSocket, from an event to its ack, against insert and echo',
  target: { at_most: 1.5 },
  worst: 10,
})

export const socketTurn = figureOf('turn', {
  name: 'socket-turn',
  what: 'one WebSocket, from an event to the outcome of a turn that says no, against insert and echo',
  target: { at_most: 2 },
  worst: 24,
})

export const socketReply = figureOf('reply', {
  name: 'socket-reply',
  what: "one WebSocket, from an event to a reflex's reply, against insert and echo",
  target: { at_most: 1.5 },
  worst: 10,
})

export const socketReflex = figureOf('reflex', {
  name: 'socket-reflex',
  what: 'one WebSocket, from an event to its outcome by a reflex, against insert and echo',
  target: { at_most: 1.3 },
  worst: 10,
})
