import { SqlEventStore, type Receipt } from '../core/event-store.ts'
import type { Event } from '../core/event.ts'
import { declaredTypes, declaredTypesFrom, cleanEvent } from '../events/parse-event.ts'
import type { Loop } from './loop.ts'
import type { Pull } from './inbox/pull.ts'
import type { Lanes } from './effects/wiring.ts'

type EventStoreParts = Pick<Lanes, 'env' | 'scope' | 'database' | 'unit' | 'settings' | 'agents' | 'hider'> & {
  loop: Loop
  pull: Pull
}

/**
 * The EventStore of a trigger. Published events are accepted like any other, here or in the scope
 * that they name. An event of a type that the scope's settings declare must fit its schema.
 */
export class ScopeEventStore extends SqlEventStore {
  readonly #parts: EventStoreParts

  constructor(parts: EventStoreParts) {
    super({ run: async (statement) => parts.database.run(statement) })
    this.#parts = parts
  }

  override async publish(...events: Event[]): Promise<Receipt[]> {
    const own = events.map(sentBy(this.#parts.scope)).map((event) => cleanEvent(event, this.#parts.hider))
    const groups = Map.groupBy(own, ({ scope }) => scope)
    for (const [scope, group] of groups) await this.#demandDeclared(scope, group)
    const receipts = await Promise.all(
      Array.from(groups, async ([scope, group]) => {
        const accepted =
          scope === this.#parts.scope
            ? this.#parts.loop.accept(group, 'agent')
            : await this.#parts.env.SCOPE.getByName(scope).accept(group, 'agent')
        if (!accepted.ok) throw new Error(`the inbox of scope ${scope} is full (${accepted.depth} of ${accepted.limit})`)
        return accepted.receipts
      }),
    )
    return receipts.flat().map(({ id, scope, status }) => ({ id, scope, status: status === 'duplicate' ? 'duplicate' : 'accepted' }))
  }

  /** Throws before anything is published. The compiler checks types of the deployment. */
  async #demandDeclared(scope: string, events: readonly Event[]): Promise<void> {
    const { env, settings, agents, scope: own } = this.#parts
    const others = events.filter(({ type }) => !agents.eventTypes.includes(type))
    if (others.length === 0) return
    const declared =
      scope === own ? declaredTypes(settings().event_types) : declaredTypesFrom(await env.SCOPE.getByName(scope).eventTypes())
    for (const event of others) {
      const [fault] = declared.get(event.type)?.safeParse(event).error?.issues ?? []
      if (!fault) continue
      const why = [fault.path.join('.'), fault.message].filter(Boolean).join(': ')
      throw new TypeError(`the event ${event.id} is not a ${event.type} as ${scope} declares it: ${why}`)
    }
  }

  /** The inherited statements would bypass the scope. */
  override subscribe(): never {
    throw new Error('events of a scope come to its trigger; to claim them, set the scope to pull and use its API')
  }

  override async ack(token: string): Promise<boolean> {
    return this.#parts.unit((unit) => this.#parts.pull.ack(unit, [token])).acked.length > 0
  }

  override async nack(token: string, error = 'not acknowledged'): Promise<boolean> {
    return this.#parts.unit((unit) => this.#parts.pull.nack(unit, token, error)).ok
  }
}

/** An event that derives from another keeps the sender of that one. */
const sentBy =
  (scope: string) =>
  (event: Event): Event =>
    event.meta.sender === undefined ? { ...event, meta: { ...event.meta, sender: `scope:${scope}` } } : event
