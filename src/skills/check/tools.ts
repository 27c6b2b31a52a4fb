import type { ManifestError } from './check-manifest.ts'
import type { Manifest } from '../manifest/manifest.ts'

/** Whether the tools that it names are there. */
export function toolErrors({ plan, preconditions }: Manifest, tools: readonly string[] | null): ManifestError[] {
  if (tools === null) return []
  const named = [
    ...preconditions.tools_available.map((tool, index) => ({ tool, path: `preconditions.tools_available.${index}` })),
    ...plan.steps.map(({ tool }, index) => ({ tool, path: `plan.steps.${index}.tool` })),
    ...plan.compensation.map(({ tool }, index) => ({ tool, path: `plan.compensation.${index}.tool` })),
  ]
  const there = tools.length === 0 ? 'there are none' : `there are ${tools.slice(0, 20).join(', ')}`
  return named.flatMap(({ tool, path }) => (tools.includes(tool) ? [] : [{ path, message: `there is no tool called ${tool}; ${there}` }]))
}
