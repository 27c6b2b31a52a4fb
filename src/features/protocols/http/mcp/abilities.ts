import { CLIENT_CAPABILITIES_META_KEY, type ClientCapabilities, type ServerContext } from '@modelcontextprotocol/server'

export const TASKS = 'io.modelcontextprotocol/tasks'

/** The abilities that a client declares with each request: forms for its user, and tasks. */
export type Abilities = { form: boolean; tasks: boolean }

export function abilitiesOf({ envelope }: ServerContext['mcpReq']): Abilities {
  // The SDK has validated it.
  const declared = (envelope as Record<string, ClientCapabilities> | undefined)?.[CLIENT_CAPABILITIES_META_KEY]
  const { elicitation, extensions } = declared ?? {}
  // An empty capability means forms, as before there were other modes.
  const form = elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined)
  return { form, tasks: extensions?.[TASKS] !== undefined }
}
