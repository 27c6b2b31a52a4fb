import type { CheckOptions, ManifestError } from './check-manifest.ts'
import { compileExpression } from '../cel/expression.ts'
import type { Manifest } from '../manifest/manifest.ts'
import { ROOTS } from '../manifest/names.ts'

/** Whether its CEL parses, gives a bool, and speaks of what is there. */
export function expressionErrors(manifest: Manifest, { probes, env_names = null }: CheckOptions): ManifestError[] {
  const names = new Set<string>([...ROOTS, ...manifest.signature.inputs.map(({ name }) => name), ...(env_names ?? [])])
  const isKnown = (name: string) => env_names === null || names.has(name)
  return expressionsOf(manifest).flatMap(({ path, source }) => {
    const compiled = compileExpression(source)
    if (!compiled.ok) return [{ path, message: compiled.detail }]
    const { paths, functions } = compiled.expression
    const unknown = new Set(paths.map(([root = '']) => root).filter((root) => !isKnown(root)))
    const calls = Array.from(functions).filter((name) => !probes.includes(name))
    return [
      ...Array.from(unknown, (name) => ({ path, message: `${name} is neither an input nor one of ${ROOTS.join(', ')}` })),
      ...calls.map((name) => ({ path, message: `there is no probe called ${name}; there are ${probes.join(', ') || 'none'}` })),
    ]
  })
}

export function expressionsOf({ preconditions, policy, plan }: Manifest): { path: string; source: string }[] {
  const listed = (sources: readonly string[], path: string) => sources.map((source, index) => ({ path: `${path}.${index}`, source }))
  return [
    ...listed(preconditions.invariants, 'preconditions.invariants'),
    ...plan.steps.flatMap(({ guard }, index) => (guard === undefined ? [] : [{ path: `plan.steps.${index}.guard`, source: guard }])),
    ...listed(policy.deny_if, 'policy.deny_if'),
    ...listed(policy.needs_approval_if, 'policy.needs_approval_if'),
  ]
}
