import { chat } from '../examples/agents/chat/agent.ts'
import { deploy } from '../examples/agents/deploy/agent.ts'
import { sshGuard } from '../examples/agents/ssh-guard/agent.ts'
import { team } from '../examples/agents/team/agent.ts'
import { reflex } from './worker.ts'

// The first agent whose pattern matches serves a scope; the built-in `prompted` serves the rest.
const worker = reflex({ agents: [sshGuard, chat, team, deploy] })
export const { Scope, Sweeper, GlobalKey, Learner, Ledger } = worker
export default worker.handlers
