import { z } from 'zod'
import type { Place as SkillPlace } from '../../skills/manifest/compat.ts'
import type { Manifest } from '../../skills/manifest/manifest.ts'
import { factsOf, givenFacts } from '../../tools/tool-facts.ts'
import type { Skipped } from './episodes/reader.ts'
import { readStandalone, type StandaloneLog } from './episodes/standalone.ts'
import { learnSkills, type SkillCandidate } from './skills/learn.ts'

const snapshotOptions = z.strictObject({
  /** The latest turns that are learned from; 10,000 by default. */
  window: z.int().min(1).default(10_000),
  /** Tools that only read, and tools that undo others, which their definitions do not say. */
  tools: givenFacts.default({}),
  owner: z.string().default('learned'),
  /** The roles that may run the skills; the roles of the turns by default. */
  roles: z.array(z.string()).readonly().optional(),
  /** The model that takes inputs from a text. Without it, the caller gives them. */
  parser_model: z.string().nullable().default(null),
  seed: z.string().default('1'),
})
export type SnapshotOptions = z.input<typeof snapshotOptions>

export type LearnedSnapshot = {
  /** Turns that were read. */
  episodes: { read: number; skipped: Skipped[] }
  candidates: ({ kind: 'skill' } & SkillCandidate)[]
  rejected: { kind: 'skill' | 'reflex'; what: string; turns: number; reason: string }[]
}

type Process = {
  log: StandaloneLog
  place: Pick<SkillPlace, 'project' | 'env' | 'toolset' | 'repo'>
  labels: readonly string[]
  roles: readonly string[]
  /** The latest version of a skill, or null. */
  latest: (id: string) => Manifest | null
}

const NO_EVENTS = 'a reflex decides on events of a scope, which a process without scopes does not have'

/**
 * Skills from the turns of a process without scopes: mined, compiled and tested. Throws for an
 * option that does not exist or has another form.
 */
export async function learnFromLog(
  { log, place, labels, roles: own, latest }: Process,
  options: SnapshotOptions = {},
): Promise<LearnedSnapshot> {
  const parsed = snapshotOptions.safeParse(options)
  if (!parsed.success) throw new TypeError(`learnSnapshot: ${z.prettifyError(parsed.error)}`)
  const { window, tools, owner, roles = own, parser_model, seed } = parsed.data
  const { project, env, toolset, repo } = place
  const shown = { agent: '', agent_version: '', env, ...(project && { project }), ...(toolset && { toolset }), ...(repo && { repo }) }
  const { traces, skipped } = readStandalone(log, { place: shown, labels, most: window })
  const called = traces.flatMap(({ acts }) => acts.flatMap(({ kind, name }) => (kind === 'tool' ? [[name, {}] as const] : [])))
  const { candidates, rejected } = await learnSkills(traces, {
    tools: factsOf({ ...Object.fromEntries(called), ...tools }),
    owner,
    roles,
    parser_model,
    seed,
    latest,
  })
  return {
    episodes: { read: traces.length, skipped },
    candidates: candidates.map((candidate) => ({ kind: 'skill', ...candidate })),
    rejected: [
      ...rejected.map((one) => ({ kind: 'skill' as const, ...one })),
      { kind: 'reflex', what: 'all', turns: traces.length, reason: NO_EVENTS },
    ],
  }
}
