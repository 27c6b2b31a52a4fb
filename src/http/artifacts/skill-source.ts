import type { Agent } from '../../agent/define-agent.ts'
import type { FieldError } from '../../base/check-json.ts'
import { anything, checkManifest, type CheckOptions } from '../../skills/check.ts'
import { parseManifest, type Manifest } from '../../skills/manifest/manifest.ts'
import type { Env } from '../../env.ts'
import { argumentErrors } from '../../skills/ci/arguments.ts'
import { knownInputs } from './tool-inputs.ts'
import { invalid } from '../problems/refusals.ts'

const MOST_ERRORS = 100
/** These are routes. */
const TAKEN = new Set(['schema', 'sync'])
/** Tools that a scope's settings declare, so that they are unknown here. */
const OF_SCOPES = /^(?:http|mcp)\./

/** `any`: accept tools and probes that this deployment lacks; they may be added later. */
export type KnownTools = 'known' | 'any'

/** The manifest in a body. Throws a problem that lists all errors. */
export function checkedManifest(body: unknown, tools: KnownTools, agents: readonly Agent[]): Manifest {
  const parsed = parseManifest(body)
  if (!parsed.ok) throw refused(parsed.errors)
  const { manifest } = parsed
  if (TAKEN.has(manifest.id)) throw refused([{ path: 'id', message: `the id ${manifest.id} is taken` }])
  const checked = checkManifest(manifest, tools === 'any' ? anything(manifest) : deployed(manifest, agents))
  if (!checked.ok) throw refused(checked.errors.map(({ path, message }) => ({ path: dotPath(path), message })))
  return manifest
}

/** The tools and probes of this deployment's agents. */
const deployed = (manifest: Manifest, agents: readonly Agent[]): CheckOptions => ({
  tools: [...new Set([...agents.flatMap(({ tools }) => Object.keys(tools)), ...toolsIn(manifest).filter((tool) => OF_SCOPES.test(tool))])],
  probes: agents.flatMap(({ probes = {} }) => Object.keys(probes)),
})

const toolsIn = ({ plan, preconditions }: Manifest): string[] => [
  ...preconditions.tools_available,
  ...[...plan.steps, ...plan.compensation].map(({ tool }) => tool),
]

/** Refuses arguments that no scope's HTTP tools take: each run of the skill would fail. */
export async function demandArguments(env: Env, manifest: Manifest, scopes: readonly string[]): Promise<void> {
  const errors = argumentErrors(manifest, await knownInputs(env, manifest, scopes))
  if (errors.length > 0) throw refused(errors)
}

/** Writes `plan.steps.0.tool` as the schema's errors do: `plan.steps[0].tool`. */
const dotPath = (path: string): string => path.replaceAll(/\.(\d+)(?=\.|$)/g, '[$1]')

function refused(errors: readonly FieldError[]) {
  const [{ path, message } = { path: '', message: 'it is refused' }] = errors
  const more = errors.length > 1 ? `, and ${errors.length - 1} more` : ''
  return invalid(`The manifest is not valid: ${path === '' ? '' : `${path}: `}${message}${more}.`, errors.slice(0, MOST_ERRORS))
}
