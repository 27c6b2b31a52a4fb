import { deploymentHider } from './base/secrets.ts'
import { hideInOutput } from './base/warn.ts'
import type { Agent } from './agent/define-agent.ts'
import { buildRegistry } from './agent/registry.ts'
import type { Feature } from './feature.ts'
import { features as all } from './features/index.ts'
import type { DurableObject } from 'cloudflare:workers'
import type { ScopeApi } from './contract/scope-api.ts'
import type { Env, GlobalKeyApi, SweeperApi } from './env.ts'
import type { LearnerApi } from './features/learning/contract/learner-api.ts'
import type { LedgerApi } from './features/market/contract/ledger-api.ts'
import { consumeOutcomes } from './events/outcomes.ts'
import { consumeDeadLetters, consumeEvents } from './events/queue.ts'
import { sweep } from './events/sweep.ts'
import { SweeperObject } from './events/sweeper.ts'
import { createApp, type App } from './http/app.ts'
import { GlobalKeyObject } from './engine/effects/global-key-object.ts'
import { LearnerObject } from './features/learning/run/learner-object.ts'
import { LedgerObject } from './features/market/ledger-object.ts'
import { recordedHistory } from './features/learning/run/recorded-history.ts'
import { ScopeObject } from './engine/scope.ts'

/** Its interface is what other objects and Workers call. The rest is its own. */
type ObjectClass<Api> = new (context: DurableObjectState, env: Env) => DurableObject<Env> & Api
export type Deployment = {
  /** `agents`: the agents of the deployment, for its tests. */
  Scope: ObjectClass<ScopeApi> & { readonly agents: readonly Agent[] }
  Sweeper: ObjectClass<SweeperApi>
  GlobalKey: ObjectClass<GlobalKeyApi>
  Learner: ObjectClass<LearnerApi>
  Ledger: ObjectClass<LedgerApi>
  app: App
  handlers: {
    fetch: (request: Request, env: Env, context: ExecutionContext) => Response | Promise<Response>
    queue: (batch: MessageBatch, env: Env) => Promise<void>
    scheduled: (controller: ScheduledController, env: Env) => Promise<void>
    /** For projects that take mails: docs/channels.md. */
    email?: (message: ForwardableEmailMessage, env: Env, context: ExecutionContext) => Promise<void>
  }
}

type Listed = { agents: readonly Agent[]; features?: readonly Feature[] }

/** The handlers and Durable Object classes of a deployment. Throws if two agents conflict. */
export function reflex({ agents: listed, features = all }: Listed): Deployment {
  const agents = buildRegistry(listed)
  const steps = { features, retention: listed.flatMap((agent) => agent.retention ?? []) }

  class Scope extends ScopeObject {
    static readonly agents = listed

    constructor(context: DurableObjectState, env: Env) {
      super(context, env, { agents, features })
      hideInOutput(deploymentHider(env))
    }
  }

  class Sweeper extends SweeperObject {
    constructor(context: DurableObjectState, env: Env) {
      super(context, env, steps)
      hideInOutput(deploymentHider(env))
    }
  }

  class Learner extends LearnerObject {
    constructor(context: DurableObjectState, env: Env) {
      super(context, env, recordedHistory)
      hideInOutput(deploymentHider(env))
    }
  }

  class Ledger extends LedgerObject {
    constructor(context: DurableObjectState, env: Env) {
      super(context, env)
      hideInOutput(deploymentHider(env))
    }
  }

  const app = createApp(agents, features)
  const handlers = {
    fetch: app.fetch,
    async queue(batch, env) {
      hideInOutput(deploymentHider(env))
      if (batch.queue === 'reflex-dead-letters') await consumeDeadLetters(batch, env)
      else if (batch.queue === 'reflex-outcomes') await consumeOutcomes(batch.messages, env)
      else await consumeEvents(batch, env)
    },
    async scheduled(controller, env) {
      hideInOutput(deploymentHider(env))
      await sweep(env, controller.scheduledTime, steps)
      for (const { scheduled } of features) await scheduled?.(env, controller.scheduledTime)
    },
  } satisfies ExportedHandler<Env>

  return { Scope, Sweeper, GlobalKey: GlobalKeyObject, Learner, Ledger, app, handlers }
}
