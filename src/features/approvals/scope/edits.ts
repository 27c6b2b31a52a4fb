import { z } from 'zod'
import { messageOf } from '../../../base/error-text.ts'
import { isJsonFields, sameJson, type JsonFields } from '../../../base/json.ts'
import { editedInputs } from '../../../contract/approval.ts'
import type { AnchoredCall } from '../../../contract/settings/anchors.ts'
import { effectInput } from '../../../engine/effects/effect.ts'
import type { Lanes } from '../../../engine/effects/wiring.ts'
import type { SkillCache } from '../../../engine/skills/skill-cache.ts'
import { anchorsOf } from '../../../skills/plan/compile.ts'
import { bindInputs, emptyBlackboard } from '../../../skills/plan/blackboard.ts'
import type { ParkedRun } from '../../../skills/session/ports.ts'
import { whyAnchored, type ToolDefinition } from '../../../tools/define-tool.ts'
import { fieldsIn } from '../../../tools/origins/values.ts'
import { isMask } from '../../../traces/redact.ts'

type AnchoredCalls = { call: AnchoredCall } | { calls: AnchoredCall[] }
export type EditParts = Pick<Lanes, 'log' | 'toolbox' | 'effects' | 'settings'> & { skill_cache: Pick<SkillCache, 'find'> }

/** The reason why a run or a call cannot have these inputs; null: they fit its schema. */
export async function editFlaw(parts: EditParts, held: ParkedRun | AnchoredCalls, edits: JsonFields): Promise<string | null> {
  const masked = Array.from(fieldsIn(edits)).find(({ value }) => isMask(value))
  if (masked) return `${masked.path} is a mask, not a value`
  if (!sameJson(parts.log.clean(edits), edits)) return 'it has a secret, which an approval must not keep'
  if ('calls' in held) return callsFlaw(parts, held.calls, edits)
  return 'call' in held ? callFlaw(parts, held.call, edits) : runFlaw(parts, held, edits)
}

/** Each call keeps its number. `null` leaves one out. */
async function callsFlaw(parts: EditParts, calls: readonly AnchoredCall[], edits: JsonFields): Promise<string | null> {
  const left_out = Object.values(edits).filter((of) => of === null)
  if (left_out.length === calls.length) return 'no call is left: reject the question'
  for (const [number, of] of Object.entries(edits)) {
    const call = calls.find((_, index) => String(index + 1) === number)
    if (!call) return `there is no call ${number}: they are 1 to ${calls.length}`
    if (of !== null && !isJsonFields(of)) return `${number} must be an object with changed arguments, or null to leave the call out`
    const flaw = of === null ? null : await callFlaw(parts, call, of)
    if (flaw !== null) return `${number}: ${flaw}`
  }
  return null
}

/** The gate judges the call with its edits, as it judged the call at first. */
async function callFlaw({ toolbox, effects }: EditParts, asked: AnchoredCall, edits: JsonFields): Promise<string | null> {
  const { tool, input } = asked
  await toolbox.ready()
  const found = toolbox.find(tool)
  if (!found.ok) return found.detail
  const { definition } = found
  const edited = withoutTaken(definition, { ...input, ...edits }, edits)
  const parsed = definition.input.safeParse(edited)
  if (!parsed.success) return `it does not fit the input of ${tool}: ${z.prettifyError(parsed.error)}`
  // A schema drops what it does not know: a misspelt name would leave the argument as it was.
  const known = { ...input, ...(isJsonFields(parsed.data) && parsed.data) }
  const unknown = Object.keys(edits).find((name) => !Object.hasOwn(known, name))
  if (unknown !== undefined) return `${tool} has no argument ${unknown}`
  try {
    effectInput({ tool, definition, input: edited })
  } catch (error) {
    return messageOf(error)
  }
  return effects.editRefusal({ tool, definition, edited: { asked, edits: editedInputs(input, edits) } }, parsed.data)
}

/** An edited input. Null takes an argument away, if the tool can do without it. */
export function withoutTaken({ input: schema }: Pick<ToolDefinition, 'input'>, input: Inputs, edits: Inputs): Record<string, unknown> {
  const without = Object.fromEntries(Object.entries(input).filter(([name]) => edits[name] !== null))
  return schema.safeParse(without).success ? without : { ...input }
}
type Inputs = Readonly<Record<string, unknown>>

async function runFlaw(
  { skill_cache, settings }: EditParts,
  { skill_id, version, inputs }: ParkedRun,
  edits: JsonFields,
): Promise<string | null> {
  const skill = await skill_cache.find(skill_id, version)
  if (!skill) return `there is no skill ${skill_id}@${version} any more`
  const { manifest } = skill
  const secret = manifest.signature.inputs.find((input) => input.secret && Object.hasOwn(edits, input.name))
  if (secret) return `${secret.name} is a secret, which nobody gives`
  const { missing, wrong, unknown } = bindInputs(manifest, { ...inputs, ...edits }, emptyBlackboard())
  const none = missing.find(({ name }) => Object.hasOwn(edits, name))
  if (none) return `${none.name} needs a value`
  const [other] = wrong
  if (other) return `${other.name} must be of type ${other.type}`
  if (unknown[0] !== undefined) return `${skill_id} has no input ${unknown[0]}`
  // The gate judges again with the blackboard of the run, and with the origins.
  const touched = (of: JsonFields) => anchorsOf(settings().anchors, { manifest, inputs: of, blackboard: emptyBlackboard() })
  const before = touched(inputs)
  const anchors = touched({ ...inputs, ...edits }).filter((name) => !before.includes(name))
  return anchors.length === 0 ? null : `it needs a question of its own: ${whyAnchored(anchors)}`
}
