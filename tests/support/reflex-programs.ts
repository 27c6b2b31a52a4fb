import type { Program } from '../../src/reflexes/sandbox.ts'

export const program = (code: string): Program => ({ hash: code, code })
/** The body of a reflex whose one parameter is `context`. */
export const reflexOf = (body: string): Program => program(`function reflex(context) { ${body} }`)

/** A reflex next to a hostile one: its results and fuel must be the same before and after. */
export const bystander = reflexOf(`
  const count = context.recent_events.filter((event) => event.type === 'ws.message').length
  return count > 0 ? { action_type: 'reply', content: 'seen: ' + count } : null`)
/** On the sample context. Equal on every host; changes with realm.js, the metering and QuickJS. */
export const BYSTANDER_FUEL = 7560
