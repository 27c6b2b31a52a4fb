import { storedSkill, storedSkillVersions } from '../../../artifacts/platform.ts'
import { agreementOfTools } from '../../../contract/agreement.ts'
import type { LearnedSkill, SkillGrounds } from '../contract/learner-api.ts'
import type { Mined, Rejected, StoredCandidate, StoredRun } from '../contract/runs.ts'
import type { Env } from '../../../env.ts'
import type { Manifest } from '../../../skills/manifest/manifest.ts'
import { storeOf } from '../../../store/store.ts'
import type { Episode } from '../episode.ts'
import { trustedAmong } from '../reflexes/sources.ts'
import { mineSkills, type SkillCandidate } from '../skills/learn.ts'
import { MINING } from '../skills/mine.ts'
import { MOST_REJECTED, placeOf, shortened, type Grounds } from './findings.ts'

/** A skill that passed its tests, as its scope registers it and as the run reports it. */
export type MinedSkill = {
  skill: LearnedSkill
  candidate: Omit<StoredCandidate, 'id' | 'version' | 'evidence'> & { mined: Mined }
  grounds: Grounds
}
type SkillRun = Pick<StoredRun, 'run_id' | 'scope'> & { trusted_sources: string[] }
export type MinedSkills = { found: MinedSkill[]; rejected: Rejected[] }

const SEED = '1'
const MOST_FOUND = 20
/** A row of the learner has at most 2 MB. */
const MOST_BYTES = 1_000_000
const TOO_MANY = `a run registers at most ${MOST_FOUND} skills`
const TOO_LONG = 'the turns that would test it have too much text'

/** Sequences of calls that the scope's turns repeat, with the tools and roles of its agent. */
export async function* mineInSteps(
  episodes: readonly Episode[],
  { run, env }: { run: SkillRun; env: Env },
): AsyncGenerator<undefined, MinedSkills, undefined> {
  const grounds = JSON.parse(await env.SCOPE.getByName(run.scope).skillGrounds()) as SkillGrounds
  const { tools, roles, min_support } = grounds
  const candidates = new Set<string>()
  const learned = yield* mineSkills(episodes, {
    tools: new Map(tools),
    scope: run.scope,
    owner: 'learned',
    roles,
    parser_model: null,
    seed: SEED,
    limits: { ...MINING, least_turns: min_support },
    trusted: trustedAmong(episodes, run.trusted_sources),
    latest: async (id) => {
      const newest = await latestOf(env, id)
      if (newest?.state === 'candidate') candidates.add(id)
      return newest === null ? null : (newest.manifest as Manifest)
    },
  })
  const found: MinedSkill[] = []
  const rejected: Rejected[] = learned.rejected.map(({ what, turns, reason }) => ({
    what,
    reason: `${reason} (${turns} ${turns === 1 ? 'turn' : 'turns'})`,
  }))
  for (const candidate of learned.candidates) {
    const one = foundOf(candidate, { run, episodes })
    const isTooLong = new TextEncoder().encode(JSON.stringify(one)).length > MOST_BYTES
    const begins = candidates.has(candidate.manifest.id) && beginsToAct(candidate, grounds)
    const reason = refusalOf(candidate, begins) ?? (isTooLong ? TOO_LONG : found.length === MOST_FOUND ? TOO_MANY : null)
    if (reason === null) found.push(one)
    else rejected.push({ what: one.candidate.decision, reason })
  }
  return { found, rejected: rejected.slice(0, MOST_REJECTED).map(shortened) }
}

/** The newest version, whatever its state. */
async function latestOf(env: Env, id: string): ReturnType<typeof storedSkill> {
  const [newest] = await storedSkillVersions(storeOf(env), id)
  return newest ? storedSkill(storeOf(env), id, newest.version) : null
}

const toolsOf = ({ plan }: Manifest): string[] => plan.steps.map(({ tool }) => tool)

/** True if a candidate that is registered already has been proven since: its scope lets it act. */
const beginsToAct = ({ manifest, evidence: { proof } }: SkillCandidate, { mode, min_agreement }: SkillGrounds): boolean =>
  mode === 'auto' && proof.low >= agreementOfTools(min_agreement, toolsOf(manifest))

function refusalOf(
  { manifest: { id, version }, changed, report: { passed, unit, fuzz, failures } }: SkillCandidate,
  begins: boolean,
): string | null {
  if (!changed && !begins) return `it is already registered as ${id}@${version}`
  if (passed) return null
  const [first] = failures
  const counts = `${unit.passed} of ${unit.n} cases and ${fuzz.passed} of ${fuzz.n} mutations`
  return `it passed only ${counts} of its tests${first ? `: ${first.name}: ${first.reason}` : ''}`
}

function foundOf(
  { manifest, evidence: { traces, ...measured }, report, cases }: SkillCandidate,
  { run: { run_id }, episodes }: { run: SkillRun; episodes: readonly Episode[] },
): MinedSkill {
  const of = new Set(traces)
  const { steps } = manifest.plan
  const places = episodes.filter(({ trace_id, acts }) => of.has(trace_id) && acts.length >= steps.length).map(placeOf)
  const [unit, fuzz] = [report.unit, report.fuzz].map(({ n, passed }) => ({ n, passed })) as [
    Mined['tests']['unit'],
    Mined['tests']['fuzz'],
  ]
  const decision = steps
    .map(({ tool, for_each, guard }) => `${tool}${for_each ? ' for each' : ''}${guard === undefined ? '' : ' if'}`)
    .join(' → ')
  const examples = [...new Set([0, Math.floor(places.length / 2), places.length - 1])].flatMap((at) => places[at] ?? [])
  const mined: Mined = { ...measured, tests: { unit, fuzz } }
  return {
    skill: { run_id, manifest, cases: cases as unknown as LearnedSkill['cases'], report, mined },
    candidate: { kind: 'skill', decision, mined, examples },
    // Two skills may call the same tools with other arguments: the id tells them apart.
    grounds: { decision: manifest.id, train: places, agreed: [], differed: [] },
  }
}
