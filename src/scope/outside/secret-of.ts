import type { Env } from '../../bindings.ts'
import { TOOL_SECRET_PREFIX } from '../../protocol/outside-tools.ts'

/** A secret of the deployment that tools may use, by its name; what is for nobody else is not there. */
export const secretOf = (env: Env, name: string): string | undefined => (isForTools(name) ? env[name] : undefined)

const isForTools = (name: string): name is `REFLEX_TOOL_${string}` => name.startsWith(TOOL_SECRET_PREFIX)
