import { app } from './http/app.ts'
import type { Env } from './env.ts'
import { consumeDeadLetters, consumeEvents } from './events/consume.ts'
import { sweep } from './events/sweep.ts'

export { Sweeper } from './events/sweeper.ts'
export { Scope } from './scope/scope.ts'

export default {
  fetch: app.fetch,
  async queue(batch, env) {
    await (batch.queue === 'reflex-dead-letters' ? consumeDeadLetters(batch, env) : consumeEvents(batch, env))
  },
  async scheduled(controller, env) {
    await sweep(env, controller.scheduledTime)
  },
} satisfies ExportedHandler<Env>
