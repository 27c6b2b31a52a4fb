import type { LanguageModelV4CallOptions, LanguageModelV4FunctionTool } from '@ai-sdk/provider'
import { z } from 'zod'
import { clarifyInput, proposeSkillInput } from '../asp/parse.ts'
import { GUIDANCE } from '../bulletin/bulletin.ts'
import { CLARIFY_TOOL, isOwnCall, PROPOSE_TOOL } from './intents.ts'

/** The form of a model's proposals: `asp` is blocks in its text, `tools` is two native tools. */
export type Protocol = 'asp' | 'tools'

const TOOLS_GUIDANCE = `To use a skill, call the tool ${PROPOSE_TOOL}. If info is missing, call the tool ${CLARIFY_TOOL}.`

export const guided = (bulletin: string, protocol: Protocol): string =>
  protocol === 'tools' ? bulletin.replace(GUIDANCE, TOOLS_GUIDANCE) : bulletin

const schemaOf = (schema: z.ZodType): LanguageModelV4FunctionTool['inputSchema'] =>
  z.toJSONSchema(schema, { io: 'input' }) as LanguageModelV4FunctionTool['inputSchema']

const nativeTools: LanguageModelV4FunctionTool[] = [
  {
    type: 'function',
    name: PROPOSE_TOOL,
    description: 'Proposes to run a skill from the bulletin',
    inputSchema: schemaOf(proposeSkillInput),
  },
  { type: 'function', name: CLARIFY_TOOL, description: 'Asks the user for what a skill needs', inputSchema: schemaOf(clarifyInput) },
]

/** Adds the two native tools. Throws if the caller's tools have their names. */
export function withNativeTools(params: LanguageModelV4CallOptions): LanguageModelV4CallOptions {
  const { tools = [], toolChoice } = params
  const taken = tools.find(({ name }) => isOwnCall({ toolName: name }))
  if (taken) throw new TypeError(`the tool ${taken.name} has a name that the protocol "tools" needs: rename it, or use the protocol "asp"`)
  if (toolChoice?.type === 'none') return params
  return { ...params, tools: [...tools, ...nativeTools] }
}

/** A block in an answer that is JSON is a piece of data. */
export const isPassive = ({ responseFormat }: LanguageModelV4CallOptions, protocol: Protocol): boolean =>
  protocol === 'asp' && responseFormat?.type === 'json'
