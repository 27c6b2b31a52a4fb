import { buildRegistry } from '../../src/agent/registry.ts'
import { chat } from '../../examples/agents/chat/agent.ts'
import { deploy } from '../../examples/agents/deploy/agent.ts'
import { orderPartition, region } from '../../templates/partitions/src/agents/orders.ts'
import { sshGuard } from '../../examples/agents/ssh-guard/agent.ts'
import { team } from '../../examples/agents/team/agent.ts'
import { LearnerObject } from '../../src/features/learning/run/learner-object.ts'
import { recordedHistory } from '../../src/features/learning/run/recorded-history.ts'
import { reflex } from '../../src/worker.ts'
import { TestedScope } from '../../testing/tested-scope.ts'
import { ARCHIVED, bucketOf } from './archive-bucket.ts'
import { CONTROLLED, controlPlaneVariables, LIMITED, limits } from './control-plane-variables.ts'
import { DECIDED, PRICED, EXPORTED, HOST } from './scope-with-remote-tools.ts'
import { greeter } from './guide/greeter.ts'
import { histories } from './histories.ts'
import { triage } from './guide/triage.ts'
import {
  answeringAgent,
  chainedAgent,
  doorkeeper,
  perceivingAgent,
  testAgent,
  lookingAgent,
  undoingAgent,
  variables,
  writingAgent,
} from './test-agents.ts'

/** The deployment of the worker tests: scripted agents beside the real ones. */
const own = [
  testAgent,
  perceivingAgent,
  lookingAgent,
  undoingAgent,
  chainedAgent,
  writingAgent,
  answeringAgent,
  { ...greeter, offline: [doorkeeper] },
  triage,
  orderPartition,
  region,
]
const agents = [...own, sshGuard, chat, team, deploy]
const registry = buildRegistry(agents)
const worker = reflex({ agents })
export const { Sweeper, GlobalKey, Ledger, app } = worker
/** A collector at the host of the test deployment's tools. */
const COLLECTOR = {
  OTEL_EXPORTER_OTLP_ENDPOINT: `https://${HOST}/otlp`,
  OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20collector-secret',
}

/** A decision model at the same host. */
const DECISION_MODEL = {
  REFLEX_DECISION_MODEL: 'system-one',
  SYSTEM_ONE_URL: `https://${HOST}/v1/systemone`,
  SYSTEM_ONE_API_KEY: 'system-one-secret',
}

/** A model with a price, and a budget that scopes share. */
const PRICED_MODEL = {
  REFLEX_MODEL: 'openai-compatible/priced',
  OPENAI_COMPATIBLE_BASE_URL: `https://${HOST}/v1`,
  OPENAI_COMPATIBLE_API_KEY: 'priced-model-secret',
  REFLEX_MODEL_PRICES: '{"priced": {"input": 1, "output": 100}}',
  REFLEX_BUDGETS: '{"scope:priced/*": {"usd_per_day": 1}}',
}

/** Only some scopes have an archive, a collector, a control plane or a decision model. */
export class Scope extends TestedScope {
  constructor(context: DurableObjectState, env: Cloudflare.Env) {
    const { name = '' } = context.id
    const archive = name.startsWith(ARCHIVED) ? { ARCHIVE: bucketOf(name, env.TEST_ARCHIVE) } : {}
    const controlled = name.startsWith(CONTROLLED) ? controlPlaneVariables : {}
    super(
      context,
      {
        ...env,
        ...archive,
        ...(name.startsWith(EXPORTED) && COLLECTOR),
        ...controlled,
        ...(name.startsWith(LIMITED) && limits),
        ...(name.startsWith(DECIDED) && DECISION_MODEL),
        ...(name.startsWith(PRICED) && PRICED_MODEL),
        ...variables.get(name),
      },
      registry,
    )
  }
}
/** A test may write the history of its scope. */
export class Learner extends LearnerObject {
  constructor(context: DurableObjectState, env: Cloudflare.Env) {
    super(context, env, (bindings, of) => histories.get(of.scope)?.(of.after) ?? recordedHistory(bindings, of))
  }
}
export default worker.handlers
