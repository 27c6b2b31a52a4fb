import { textHash } from '../base/hash.ts'

/** Hashes of the lines of the system messages, and of the tools, that one turn's calls showed. */
export type ShownToModel = { lines: readonly string[]; tools: readonly string[] }

/** For each part, the number of turns in a row that showed it, or, negative, did not. */
type PromptParts = Record<string, number>
type Kind = 'lines' | 'tools'

/**
 * The instructions and tools of the slow path, as far as its turns have them in common. Prompts
 * also hold the time or the context: a part belongs to the identity once some turns in a row had
 * it, and leaves it once they had not.
 */
export type Identity = {
  prompt_hash: string
  tools_hash: string
  /** Parts that belong to it, and parts that may. */
  lines: PromptParts
  tools: PromptParts
  new_lines: PromptParts
  new_tools: PromptParts
  /** Turns since it began. */
  turns: number
  /** It began soon after the one before: the prompts change by themselves. */
  restless: boolean
}

/** Turns in a row before a part counts: normally, and where prompts change by themselves. */
const PATIENCE = { calm: 3, restless: 20 } as const
/** A part that this many turns showed is missed at once. */
const STEADY = 20
/** Turns after which prompts no longer count as changing by themselves. */
const CALM_AFTER = 200

/** `named`: the hash of the instructions, where they are known without the calls. */
export const beginIdentity = (
  shown: ShownToModel,
  { restless = false, named }: { restless?: boolean; named?: string | undefined } = {},
): Identity => ({
  prompt_hash: named ?? textHash(shown.lines.toSorted().join()),
  tools_hash: textHash(shown.tools.toSorted().join()),
  lines: countsOf(shown.lines),
  tools: countsOf(shown.tools),
  new_lines: {},
  new_tools: {},
  turns: 1,
  restless,
})

/** The identity after one more turn, and what changed. */
export function showIdentity(before: Identity, shown: ShownToModel): { identity: Identity; changed: Kind | null } {
  const patience = before.restless ? PATIENCE.restless : PATIENCE.calm
  // Parts that the first turns do not have in common are dropped.
  const settles = before.turns < patience
  const lines = step({ own: before.lines, fresh: before.new_lines }, new Set(shown.lines), { settles, patience, restless: before.restless })
  const tools = step({ own: before.tools, fresh: before.new_tools }, new Set(shown.tools), { settles, patience, restless: before.restless })
  if (!lines.changed && !tools.changed) {
    // It stays restless while a calm one would have changed.
    const most = lines.stirs || tools.stirs ? PATIENCE.restless : CALM_AFTER
    const turns = Math.min(before.turns + 1, most)
    const restless = before.restless && turns < CALM_AFTER
    const parts = { lines: lines.own, new_lines: lines.fresh, tools: tools.own, new_tools: tools.fresh }
    return { identity: { ...before, ...parts, turns, restless }, changed: null }
  }
  const next = beginIdentity(shown, { restless: before.restless || before.turns < STEADY })
  const { prompt_hash, tools_hash } = before
  const kept = { ...(!lines.changed && { prompt_hash }), ...(!tools.changed && { tools_hash }) }
  return { identity: { ...next, ...kept }, changed: lines.changed ? 'lines' : 'tools' }
}

type How = { settles: boolean; patience: number; restless: boolean }

function step(
  { own, fresh }: { own: PromptParts; fresh: PromptParts },
  present: ReadonlySet<string>,
  { settles, patience, restless }: How,
) {
  const kept: PromptParts = {}
  const come: PromptParts = {}
  let changed = false
  for (const [part, run] of Object.entries(own)) {
    if (present.has(part)) kept[part] = run < 0 ? 1 : Math.min(run + 1, STEADY)
    else if (!settles) {
      const missed = run < 0 ? run - 1 : -1
      kept[part] = missed
      changed ||= -missed >= patience || (run >= STEADY && !restless)
    }
  }
  for (const part of present) {
    if (Object.hasOwn(own, part)) continue
    come[part] = (fresh[part] ?? 0) + 1
    changed ||= come[part] >= patience
  }
  return { own: kept, fresh: come, changed, stirs: restless && Object.values(come).some((run) => run >= PATIENCE.calm) }
}

const countsOf = (parts: readonly string[]): PromptParts => Object.fromEntries(parts.map((part) => [part, 1]))
