import type { HttpToolSetting } from '../../contract/settings/outside-tools.ts'
import type { Env } from '../../env.ts'
import type { Manifest } from '../../skills/manifest/manifest.ts'
import { argumentErrors, type ToolInputs } from '../../skills/ci/arguments.ts'
import { latestScopes } from '../../store/scopes.ts'
import { storeOf } from '../../store/store.ts'
import { inputSchemaOf } from '../../tools/slot-text.ts'

/** Scopes that are asked for their tools: each of them is woken. */
const MOST_ASKED = 20

/**
 * The inputs of the HTTP tools that a manifest calls, in a scope among `patterns` whose tools it
 * fits, else in one that has some of them. Empty where no such scope is known.
 */
export async function knownInputs(env: Env, manifest: Manifest, patterns: readonly string[]): Promise<ToolInputs> {
  const { steps, compensation } = manifest.plan
  const named = new Set([...steps, ...compensation].map(({ tool }) => tool).filter((tool) => tool.startsWith('http.')))
  if (named.size === 0) return new Map()
  const scopes = await latestScopes(storeOf(env), patterns, MOST_ASKED)
  const asked = await Promise.all(
    scopes.map(async (scope) => {
      const tools = JSON.parse(await env.SCOPE.getByName(scope).httpTools()) as HttpToolSetting[]
      const used = tools.filter(({ name }) => named.has(name))
      return new Map(used.map((tool) => [tool.name, { schema: inputSchemaOf(tool), scope, acts: howItActs(tool) }]))
    }),
  )
  const having = asked.filter(({ size }) => size > 0)
  return having.find((inputs) => argumentErrors(manifest, inputs).length === 0) ?? having[0] ?? new Map()
}

/** Why MCP tools of a manifest act: their servers say so, in a scope among `patterns`. */
export async function destroyingTools(env: Env, { plan: { steps } }: Manifest, patterns: readonly string[]): Promise<Map<string, string>> {
  const named = [...new Set(steps.map(({ tool }) => tool).filter((tool) => tool.startsWith('mcp.')))]
  if (named.length === 0) return new Map()
  const scopes = await latestScopes(storeOf(env), patterns, MOST_ASKED)
  const found = await Promise.all(scopes.map((scope) => env.SCOPE.getByName(scope).destroying(named)))
  return new Map(found.flat().map((tool) => [tool, 'its server says that it destroys']))
}

/** A tool with a key of its own is safe to repeat. */
const howItActs = ({ method, repeatable = false, idempotence_key: key }: HttpToolSetting): string | null =>
  method === 'GET' || repeatable || key !== undefined ? null : `it sends ${method}`
