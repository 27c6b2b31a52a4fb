import { chat } from './chat.ts'
import type { Agent } from './define-agent.ts'
import { deploy } from './deploy.ts'
import { prompted } from './prompted.ts'
import { sshGuard } from './ssh-guard.ts'
import { team } from './team.ts'

/** The agents of this deployment, in the order in which their patterns are tried; `prompted` serves the rest. */
export const agents: readonly Agent[] = [sshGuard, chat, team, deploy, prompted]
