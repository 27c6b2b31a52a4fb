import type { Agent } from '../../agent/define-agent.ts'
import type { FieldError } from '../../base/field-error.ts'
import { compileExpression } from '../../skills/cel/expression.ts'
import { checkManifest, type CheckOptions, expressionsOf } from '../../skills/manifest/check.ts'
import { parseManifest, type Manifest } from '../../skills/manifest/manifest.ts'
import { invalid } from '../problems/refusals.ts'

const MOST_ERRORS = 100
/** `schema` has a route of its own. */
const TAKEN = 'schema'
/** Tools that a scope gets by its settings: which there are is not known here. */
const OF_SCOPES = /^(?:http|mcp)\./

/** `any`: it may name tools and probes that this deployment does not have, for they may come later. */
export type KnownTools = 'known' | 'any'

/** The manifest that was sent, refused with all that is wrong with it. */
export function checkedManifest(body: unknown, tools: KnownTools, agents: readonly Agent[]): Manifest {
  const parsed = parseManifest(body)
  if (!parsed.ok) throw refused(parsed.errors)
  const { manifest } = parsed
  if (manifest.id === TAKEN) throw refused([{ path: 'id', message: `the id ${TAKEN} is taken` }])
  const checked = checkManifest(manifest, tools === 'any' ? everything(manifest) : deployed(manifest, agents))
  if (!checked.ok) throw refused(checked.errors.map(({ path, message }) => ({ path: dotPath(path), message })))
  return manifest
}

/** What this deployment's agents bring. */
const deployed = (manifest: Manifest, agents: readonly Agent[]): CheckOptions => ({
  tools: [...new Set([...agents.flatMap(({ tools }) => Object.keys(tools)), ...toolsIn(manifest).filter((tool) => OF_SCOPES.test(tool))])],
  probes: agents.flatMap(({ probes = {} }) => Object.keys(probes)),
})

const everything = (manifest: Manifest): CheckOptions => ({
  tools: null,
  probes: expressionsOf(manifest).flatMap(({ source }) => {
    const compiled = compileExpression(source)
    return compiled.ok ? [...compiled.expression.functions] : []
  }),
})

const toolsIn = ({ plan, preconditions }: Manifest): string[] => [
  ...preconditions.tools_available,
  ...[...plan.steps, ...plan.compensation].map(({ tool }) => tool),
]

/** `plan.steps.0.tool` as the schema's own errors say it: `plan.steps[0].tool`. */
const dotPath = (path: string): string => path.replaceAll(/\.(\d+)(?=\.|$)/g, '[$1]')

function refused(errors: readonly FieldError[]) {
  const [{ path, message } = { path: '', message: 'it is refused' }] = errors
  const more = errors.length > 1 ? `, and ${errors.length - 1} more` : ''
  return invalid(`The manifest is not valid: ${path === '' ? '' : `${path}: `}${message}${more}.`, errors.slice(0, MOST_ERRORS))
}
