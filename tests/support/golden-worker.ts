import { env } from 'cloudflare:workers'
import { reflex } from '../../src/worker.ts'
import { triggerOf } from '../golden/behaviours.ts'
import { behaviours, testAgent } from './test-agents.ts'

/** A deployment of the agent of golden traces. `GOLDEN` has the name of each trace by its scope. */
const worker = reflex({ agents: [testAgent] })
const { GOLDEN = '{}' } = env as unknown as { GOLDEN?: string }
for (const [scope, name] of Object.entries(JSON.parse(GOLDEN) as Record<string, string>)) behaviours.set(scope, triggerOf(name))

export const { Scope, Sweeper, GlobalKey, Learner, Ledger } = worker
export default worker.handlers
