import { app } from './app.ts'
import type { Env } from './bindings.ts'
import { consumeDeadLetters, consumeEvents } from './queue/consume.ts'
import { sweep } from './queue/sweep.ts'

export { Sweeper } from './queue/sweeper.ts'
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
