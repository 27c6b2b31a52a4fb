import { mapJson, type JsonFields } from '../../base/json.ts'
import type { Anchor } from '../../contract/settings/anchors.ts'
import { anchorsTouched } from '../../tools/anchors.ts'
import type { Manifest } from '../manifest/manifest.ts'
import type { Blackboard } from './blackboard.ts'
import { templateScope } from './compile.ts'
import { bindInputs } from './inputs.ts'
import { resolveTemplate } from './template.ts'

type Planned = { manifest: Manifest; inputs: JsonFields; blackboard: Blackboard }

/**
 * The anchors that the steps and compensations of a plan touch, by what is known before it runs.
 * Arguments from the outputs of steps are compared when their step calls its tool.
 */
export function anchorsOf(anchors: readonly Anchor[] = [], { manifest, inputs, blackboard }: Planned): string[] {
  if (anchors.length === 0) return []
  const scope = templateScope({ inputs: bindInputs(manifest, inputs, blackboard).inputs, blackboard }, {})
  const known = (value: unknown): unknown => {
    if (typeof value !== 'string') return value
    const resolved = resolveTemplate(value, scope)
    return resolved.ok ? resolved.value : null
  }
  const { steps, compensation } = manifest.plan
  const touched = [...steps, ...compensation].flatMap(({ tool, args }) => anchorsTouched(anchors, { tool, input: mapJson(args, known) }))
  return [...new Set(touched)]
}
