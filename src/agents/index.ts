import { chat } from './chat/agent.ts'
import type { Agent } from '../agent/define-agent.ts'
import { deploy } from './deploy/agent.ts'
import { prompted } from '../agent/prompted.ts'
import { sshGuard } from './ssh-guard/agent.ts'
import { team } from './team/agent.ts'

/** The agents of this deployment, in the order in which their patterns are tried; `prompted` serves the rest. */
export const agents: readonly Agent[] = [sshGuard, chat, team, deploy, prompted]
