import { chat } from './agents/chat/agent.ts'
import { deploy } from './agents/deploy/agent.ts'
import { sshGuard } from './agents/ssh-guard/agent.ts'
import { team } from './agents/team/agent.ts'
import { reflex } from './worker.ts'

// The first agent whose pattern matches serves a scope; the built-in `prompted` serves the rest.
const worker = reflex({ agents: [sshGuard, chat, team, deploy] })
export const { Scope, Sweeper, GlobalKey, Learner, Ledger } = worker
export default worker.handlers
