import { z } from 'zod'
import { registerReflex, setReflexState } from '../../artifacts/kinds.ts'
import { listReflexesFor, lookUpReflex, reflexVersionsFor, type LookedUp } from '../../artifacts/look-up.ts'
import {
  agentOwner,
  reflexId,
  reflexReference,
  reflexVersionNumber,
  type ReflexReference,
  type ReflexVersion,
} from '../../contract/reflex.ts'
import type { Configuration } from '../settings/change.ts'
import { presentMetrics } from '../../reflexes/metrics.ts'
import { wayToAct } from '../../reflexes/promotion.ts'
import type { ReflexContext } from '../../reflexes/reflex-context.ts'
import { dryRun, runReflex } from '../../reflexes/run-reflex.ts'
import { readableProgram } from '../../reflexes/weights.ts'
import type { Sandbox } from '../../reflexes/sandbox.ts'
import { checkReflex } from '../../reflexes/static-check.ts'
import { defineTool, type ToolDefinition } from '../../tools/define-tool.ts'
import type { reflexToolNames } from './guidance.ts'
import { ownedBy } from './versions.ts'
import { storeOf } from '../../store/store.ts'
import type { Lanes } from '../effects/wiring.ts'

/** Maximum number of reflexes that a scope's agent owns. */
const MOST_OWNED = 100
const MOST_TRIED = 100
/** Maximum fuel of one test, which blocks the scope. */
const MOST_FUEL = 20_000_000
const HOURS = 24

type ReflexToolsParts = Lanes & {
  sandbox: () => Sandbox
  rechain: Configuration['rechain']
  turn_id: () => string | null
}
type ReflexTools = Record<(typeof reflexToolNames)[number], ToolDefinition>

const code = z.string().min(1).max(65_536).describe('JavaScript: function reflex(context) { … }')
const named = z.strictObject({ id: reflexId, version: reflexVersionNumber.optional() })
/** Built once for all scopes: they would take a quarter of the time in which one wakes. */
const inputs = {
  write: z.strictObject({
    id: reflexId,
    code,
    description: z.string().max(1000).default(''),
    copied_from: named.optional().describe('where its code comes from, if it is another’s'),
  }),
  list: z.strictObject({ q: z.string().min(1).max(100).optional() }),
  test: z.strictObject({ code, events: z.int().min(1).max(MOST_TRIED).default(20) }),
  update: z.union([
    z.strictObject({ reflexes: z.array(reflexReference).max(100) }),
    z.strictObject({ reflex_artifact_id: reflexId.nullable() }),
  ]),
  retire: named.extend({ reason: z.string().min(1).max(500) }),
  overrule: z.strictObject({ id: reflexId, reason: z.string().min(1).max(500) }),
}

/** Tools to write reflexes and change the chain. Refusals are results, for the model. */
export function reflexTools(parts: ReflexToolsParts): ReflexTools {
  return { ...writing(parts), ...reading(parts), ...changing(parts) }
}

function writing({ scope, env, owned, agent, sandbox, reflex_sync, now }: ReflexToolsParts) {
  return {
    write_reflex: defineTool({
      destinations: [],
      description: 'Writes a reflex, or a new version of one that you own. It runs in shadow mode until its decisions have matched yours.',
      input: inputs.write,
      async execute({ id, code: source, description, copied_from }) {
        const checked = await checkReflex(source)
        if (!checked.ok) return { written: false, errors: checked.errors }
        const tried = dryRun(sandbox(), { hash: checked.hash, code: source })
        if (!tried.ok && tried.run.reason !== 'error') return { written: false, errors: tried.errors }
        if (!owned.ids.includes(id) && owned.ids.length >= MOST_OWNED)
          return { written: false, reason: `you own ${MOST_OWNED} reflexes: retire some` }
        const { version: source_version = null } = (copied_from && (await lookUpReflex(storeOf(env), copied_from, { agent: scope }))) ?? {}
        if (copied_from && !source_version) return { written: false, reason: `there is no reflex ${copied_from.id} to copy from` }
        const origin = source_version && { id: source_version.id, version: source_version.version, hash: source_version.hash }
        const created = await registerReflex(storeOf(env), {
          id,
          code: source,
          hash: checked.hash,
          description,
          owner: agentOwner(scope),
          owner_id: agentOwner(scope),
          scopes: [scope],
          state: 'shadow',
          provenance: { by: agent().name, scope, template: null, origin },
          now: now(),
        })
        if (!created.ok) return { written: false, reason: created.detail }
        owned.add(id)
        await reflex_sync.refresh()
        const { version, hash, state } = created.version
        return {
          written: true,
          id,
          version,
          hash,
          state,
          next: `name it in update_agent_config, if your chain does not have it yet. ${wayToAct({ id, version, state, by_agent: true }) ?? ''}`.trim(),
        }
      },
    }),
  }
}

const ownReflexes = ({ owned, features }: Pick<ReflexToolsParts, 'owned' | 'features'>) =>
  ownedBy(
    owned,
    features.flatMap((feature) => feature.owns?.() ?? []),
  )

function reading(parts: ReflexToolsParts) {
  const { scope, env, programs, records, recordings, sandbox, now } = parts
  return {
    list_reflexes: defineTool({
      destinations: [],
      repeatable: true,
      description: 'Lists the reflexes of your chain with their metrics, those that you own, and others that match q.',
      input: inputs.list,
      async execute({ q }) {
        const sums = new Map(records.all().map(({ reflex_id, version, metrics }) => [`${reflex_id}@${version}`, presentMetrics(metrics)]))
        const chain = programs.links.map(({ reference, acting, watching, absent }) => ({
          ...reference,
          acts: acting?.version ?? null,
          watches: watching.map(({ version }) => version),
          absent: absent?.detail ?? null,
          done: [acting, ...watching].flatMap((one) => (one ? [sums.get(`${one.id}@${one.version}`) ?? null] : [])),
        }))
        const found = q === undefined ? [] : (await listReflexesFor(storeOf(env), { q, limit: 20 }, { agent: scope })).items
        return {
          chain,
          owned: ownReflexes(parts),
          found: found.map(({ id, version, owner, description, state }) => ({ id, version, owner, description, state })),
        }
      },
    }),
    read_reflex: defineTool({
      destinations: [],
      repeatable: true,
      description: 'Reads the code of a reflex that this scope may read. To use another’s, copy it: write_reflex with copied_from.',
      input: named,
      async execute({ id, version }) {
        const found = await lookUpReflex(storeOf(env), { id, version }, { agent: scope })
        return found
          ? { found: true, ...present(found) }
          : { found: false, reason: `there is no reflex ${id}${version ? `@${version}` : ''}` }
      },
    }),
    test_reflex: defineTool({
      destinations: [],
      repeatable: true,
      description: 'Runs code on the latest events of this scope, as a reflex would have seen them, without acting.',
      input: inputs.test,
      async execute({ code: source, events }) {
        const checked = await checkReflex(source)
        if (!checked.ok) return { ok: false, errors: checked.errors }
        const program = { hash: checked.hash, code: source }
        const page = recordings.latest(now() - HOURS * 3_600_000, events)
        if (page.length === 0)
          return { ok: true, runs: [dryRun(sandbox(), program).run], note: 'this scope has no events yet: this ran on a sample' }
        const runs: object[] = []
        let spent = 0
        for (const { event_id, context, decision } of page) {
          if (spent > MOST_FUEL) return { ok: true, runs, note: `it computes so much that it was tried on ${runs.length} events only` }
          const { action, reason, error, fuel } = runReflex(sandbox(), program, context as ReflexContext)
          spent += fuel
          runs.push({ event_id, action, reason, error, decided: decision?.acts ?? null })
        }
        return { ok: true, runs }
      },
    }),
  }
}

function changing(parts: ReflexToolsParts) {
  const { scope, env, owned, programs, turn_id, unit, now, agent } = parts
  return {
    update_agent_config: defineTool({
      destinations: [],
      description:
        'Sets the part of the chain that you own: the reflexes that see each event before you do, in order. An empty list removes them all. Reflexes that people put there stay.',
      input: inputs.update,
      async execute(config) {
        const reflexes =
          'reflexes' in config ? config.reflexes : config.reflex_artifact_id === null ? [] : [{ id: config.reflex_artifact_id }]
        // An agent may remove what it has retired.
        const written = programs.all.flatMap(({ id, owner_id }) => (owner_id === agentOwner(scope) ? [id] : []))
        const mine = [...ownReflexes(parts), ...written]
        const foreign = reflexes.find(({ id }) => !mine.includes(id) && !programs.links.some((link) => link.reference.id === id))
        if (foreign)
          return { changed: false, reason: `${foreign.id} is not yours: copy it by write_reflex with copied_from, and name your copy` }
        const changed = await parts.rechain((chain) => withOwn(chain, reflexes, mine), `agent:${agent().name}`)
        if (!changed.ok) return { changed: false, reason: changed.detail }
        const absent = programs.links.flatMap(({ absent: why }) => (why ? [why.detail] : []))
        return { changed: true, reflexes: changed.reflexes, absent }
      },
    }),
    retire_reflex: defineTool({
      destinations: [],
      description: 'Retires a reflex that you own, or one version of it: it never runs again.',
      input: inputs.retire,
      async execute({ id, version, reason }) {
        const { version: found } = (await lookUpReflex(storeOf(env), { id, version }, { agent: scope })) ?? {}
        if (!found) return { retired: false, reason: `there is no reflex ${id}` }
        if (found.owner_id !== agentOwner(scope))
          return { retired: false, reason: `${id} is ${found.owner}'s: remove it from your chain instead` }
        const versions = version === undefined ? await reflexVersionsFor(storeOf(env), id, { agent: scope }) : [found]
        for (const one of versions) await setReflexState(storeOf(env), { id, version: one.version, state: 'retired', reason, now: now() })
        if (version === undefined) owned.remove(id)
        await parts.reflex_sync.refresh()
        return { retired: true, id, versions: versions.map((one) => one.version) }
      },
    }),
    overrule_reflex: defineTool({
      destinations: [],
      description: 'Marks an action of a reflex in your chain as wrong. A reflex that is overruled too often is deactivated.',
      input: inputs.overrule,
      async execute({ id, reason }) {
        const noted = unit((unit) => parts.features.some((feature) => feature.overruled?.(unit, id, { turn_id: turn_id(), reason })))
        return noted
          ? { noted: true }
          : { noted: false, reason: `no reflex ${id} of your chain has a recent action that is not overruled yet` }
      },
    }),
  }
}

/** The chain with the agent's own reflexes as it wants them. The others keep their places. */
function withOwn(chain: readonly ReflexReference[], wanted: readonly ReflexReference[], mine: readonly string[]): ReflexReference[] {
  const own = wanted.filter(({ id }) => mine.includes(id))
  const kept = chain.flatMap((reference) => {
    if (!mine.includes(reference.id)) return [reference]
    const next = own.shift()
    return next ? [next] : []
  })
  return [...kept, ...own]
}

const present = ({
  version: { id, version, owner, description, code: source, state, state_reason, provenance },
  reads,
}: LookedUp<ReflexVersion>) => ({
  id,
  version,
  owner,
  description,
  code: reads ? readableProgram(source) : null,
  ...(!reads && { withheld: 'it is for sale: buy a licence or a copy' }),
  state,
  state_reason,
  provenance,
})
