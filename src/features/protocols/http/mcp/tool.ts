import type { Tool } from '@modelcontextprotocol/server'
import { cuesOf, scoreOf, tauOf } from '../../../../skills/bulletin/score.ts'
import type { Manifest, Input, ValueType } from '../../../../skills/manifest/manifest.ts'
import { WHY } from '../../../../skills/manifest/names.ts'
import { toolName } from './tool-name.ts'

export type SkillsPage = {
  goal_labels: string[]
  tau?: number
  skills: { manifest: Manifest; needed: string[]; acts: boolean }[]
  more: boolean
}

/** `needed`: required inputs that the scope's blackboard does not give. `acts`: a step may act. */
type ToolContext = { goal_labels: readonly string[]; tau?: number | undefined; needed: readonly string[]; acts: boolean }

const schemas: Record<ValueType, Record<string, unknown>> = {
  string: { type: 'string' },
  url: { type: 'string', format: 'uri' },
  number: { type: 'number' },
  integer: { type: 'integer' },
  boolean: { type: 'boolean' },
  list: { type: 'array', items: {} },
  object: { type: 'object' },
}

const why = {
  type: 'string',
  maxLength: 2000,
  description: 'Why you call this, in the words of whoever asked for it: the gate runs only what is relevant.',
}

/** A skill as an MCP client of the scope sees it. */
export async function toolOf(manifest: Manifest, { goal_labels, tau, needed, acts }: ToolContext): Promise<Tool> {
  const { id, version, plan } = manifest
  // Secret inputs come from the blackboard: a model must not supply them.
  const inputs = manifest.signature.inputs.filter(({ secret }) => !secret)
  const required = inputs.map(({ name }) => name).filter((name) => needed.includes(name))
  return {
    name: await toolName(id),
    title: `${id}@${version}`,
    description: descriptionOf(manifest),
    inputSchema: {
      type: 'object',
      properties: { ...Object.fromEntries(inputs.map((input) => [input.name, schemaOf(input)])), [WHY]: why },
      required: isRelevant(manifest, goal_labels, tau) ? required : [...required, WHY],
      additionalProperties: false,
    },
    annotations: {
      destructiveHint: acts,
      idempotentHint: plan.idempotence_key !== undefined,
      openWorldHint: acts,
    },
    _meta: { 'reflex/skill_id': id, 'reflex/version': version },
  }
}

const schemaOf = ({ type, description }: Input): object => ({ ...schemas[type], ...(description === undefined ? {} : { description }) })

/** True if the scope's goal labels alone reach the gate's threshold. */
function isRelevant(manifest: Manifest, goal_labels: readonly string[], tau: number | undefined): boolean {
  return scoreOf(manifest, cuesOf({ text: '', goal_labels, entity_types: [] }), false).score >= tauOf(manifest, tau)
}

function descriptionOf({ description = '', signature: { outputs } }: Manifest): string {
  const gives = outputs.map(({ name, type }) => `${name} (${type})`).join(', ')
  return [description, gives === '' ? '' : `Gives ${gives}.`].filter((part) => part !== '').join('\n')
}
