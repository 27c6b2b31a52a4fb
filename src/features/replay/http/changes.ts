import { lookUpReflex, reflexVersionsFor, type Asker } from '../../../artifacts/look-up.ts'
import type { ScopeLicence } from '../../../contract/licence.ts'
import type { Principal } from '../../../contract/principal.ts'
import type { ReflexReference } from '../../../contract/reflex.ts'
import type { ReplayBudget, ReplayChanges } from '../contract/what-if.ts'
import type { Settings } from '../../../contract/settings/settings.ts'
import type { Env } from '../../../env.ts'
import type { AgentRegistry } from '../../../agent/registry.ts'
import { ModelMisconfigured } from '../../../models/model-errors.ts'
import { ownPricesOf } from '../../../models/model-call.ts'
import { modelName, resolveModel } from '../../../models/resolve-model.ts'
import { checkReflex } from '../../../reflexes/static-check.ts'
import { settingsChange } from '../what-if/changes.ts'
import { LiveModel } from '../what-if/live-model.ts'
import { resolvedOf, type WhatIfProgram, type Resolved } from '../what-if/what-if.ts'
import { parseManifest, type Manifest } from '../../../skills/manifest/manifest.ts'
import { storeOf } from '../../../store/store.ts'
import { demandRole } from '../../../http/auth/middleware.ts'
import { invalid } from '../../../http/problems/refusals.ts'

export type ReplayQuery = { mode: 'pinned' | 'what_if'; changes?: ReplayChanges | undefined; budget?: ReplayBudget | undefined }

/** True if reflexes may run on events on which none ran when they were recorded. */
export const showsMore = ({ changes: { reflexes, reflex_code, settings } = {} }: ReplayQuery): boolean =>
  [reflexes, reflex_code, settings?.reflexes].some((change) => change !== undefined)

/** `is_file`: anybody can write a file, so that its scope says nothing about who may run what. */
type Replaying = {
  env: Env
  agents: AgentRegistry
  principal: Principal
  scope: string
  is_file: boolean
  settings: readonly Settings[]
}

/** The changes with the code and the model that they name; null if the mode is `pinned`. */
export async function resolveChanges({ mode, changes, budget }: ReplayQuery, parts: Replaying): Promise<Resolved | null> {
  if (mode === 'pinned') {
    if (changes ?? budget) throw invalid('A pinned replay takes neither changes nor a budget: use the mode what_if.')
    return null
  }
  if (!changes) throw invalid('A what_if needs changes: name at least one.')
  const code = await codeOf(changes)
  const programs = await programsOf(changes, parts)
  return resolvedOf(changes, { manifests: manifestsOf(changes), code, programs, live: liveModel(changes, budget, parts) })
}

const quoting = (what: string, [first]: readonly { path: string; message: string }[]): string =>
  first ? `${what}: ${first.path}: ${first.message}` : `${what}.`

function manifestsOf({ manifest = [] }: ReplayChanges): Map<string, Manifest> {
  const parsed = [manifest].flat().map((given) => {
    const made = parseManifest(given)
    if (!made.ok) throw invalid(quoting(`The manifest of ${given.id} is invalid`, made.errors), made.errors)
    return made.manifest
  })
  return new Map(parsed.map((one) => [one.id, one]))
}

async function codeOf({ reflex_code = {} }: ReplayChanges): Promise<Map<string, WhatIfProgram>> {
  const programs = new Map<string, WhatIfProgram>()
  for (const [id, code] of Object.entries(reflex_code)) {
    const check = await checkReflex(code)
    if (!check.ok) {
      const errors = check.errors.map(({ line, column, message }) => ({
        path: `changes.reflex_code.${id}`,
        message: `line ${line}:${column} ${message}`,
      }))
      throw invalid(quoting(`The code of the reflex ${id} is invalid`, errors), errors)
    }
    programs.set(id, { id, version: 1, state: 'active', code, hash: check.hash })
  }
  return programs
}

/** Code of the reflexes that the chains name, for those that did not run when it was recorded. */
async function programsOf(
  changes: ReplayChanges,
  { settings, env, principal, scope, is_file }: Replaying,
): Promise<Map<string, WhatIfProgram>> {
  const chains = [settingsChange(changes)?.reflexes ?? [], ...settings.map(({ reflexes: chain }) => chain)]
  const named = new Map(chains.flat().map((reference) => [nameOf(reference), reference]))
  const asker: Asker = { key: principal, in: is_file ? undefined : scope }
  const found = await Promise.all(Array.from(named, async ([name, reference]) => [name, await programOf(env, reference, asker)] as const))
  return new Map(found.flatMap(([name, program]) => (program ? [[name, program]] : [])))
}

const nameOf = ({ id, version }: ReflexReference): string => (version === undefined ? id : `${id}@${version}`)

/**
 * The newest active version acts. One that is not active yet may be tried out. What the key may not
 * read needs a licence for the scope that does not count uses: a replay counts none.
 */
async function programOf(env: Env, { id, version }: ReflexReference, asker: Asker): Promise<WhatIfProgram | null> {
  const db = storeOf(env)
  const active = version ?? (await reflexVersionsFor(db, id, asker)).find(({ state }) => state === 'active')?.version
  const found = await lookUpReflex(db, { id, version: active }, asker)
  if (!found) return null
  const now = Date.now()
  const allows = ({ expires_at, fires, metered }: ScopeLicence) => (expires_at ?? Infinity) > now && fires === null && !metered
  return found.reads || found.licences?.some(allows) === true ? found.version : null
}

function liveModel({ model }: ReplayChanges, budget: ReplayBudget | undefined, { env, agents, principal, scope, settings }: Replaying) {
  if (!budget) return null
  demandRole(principal, 'operator')
  const name = model ?? modelName(env, settings[0])
  try {
    return new LiveModel(
      resolveModel(name, env, agents.agentOf(scope, settings[0]?.agent).offline),
      { name, own_prices: ownPricesOf(env) },
      budget,
    )
  } catch (error) {
    if (error instanceof ModelMisconfigured) throw invalid(error.message)
    throw error
  }
}
