import { placeOf } from '../../../skills/manifest/compat.ts'
import type { SessionPorts } from '../../../skills/session/ports.ts'
import { controlPlaneOf } from '../client/client.ts'
import { NO_VERDICTS, Verdicts, type KeptVerdicts } from '../client/verdicts.ts'
import { pushApproval, pushRefusal } from '../../../skills/gate/pushed.ts'
import { onlyReads } from '../../../tools/define-tool.ts'
import type { Skilled } from '../../../engine/skills/wiring.ts'
import { scopeHead } from '../../../engine/log/spans.ts'

type Parts = Pick<Skilled, 'env' | 'scope' | 'database' | 'unit' | 'settings' | 'toolbox' | 'skill_cache' | 'now'>

/** The state key of the verdicts, which serve while the control plane is away. */
const KEY = 'control_plane'

/**
 * The policy of the deployment's control plane, if it has one, and what the deployment itself lets
 * its skills do.
 */
export function policyOf({ env, scope, database, unit, settings, toolbox, skill_cache, now }: Parts): SessionPorts['controlPlane'] | null {
  const control_plane = controlPlaneOf(env)
  if (!control_plane) return null
  const verdicts = new Verdicts({
    ask: (question) => control_plane.check(question),
    load: () => database.read<KeptVerdicts>(KEY, NO_VERDICTS),
    save: (kept, turned) =>
      unit((work) => {
        work.write(KEY, kept)
        const source = 'control-plane'
        if (turned === 'restored') work.log({ ...scopeHead(), kind: 'skills-restored', source })
        if (turned !== 'degraded') return
        const reason = `the control plane does not answer: its cached verdicts are used (${kept.error})`
        work.log({ ...scopeHead(), kind: 'skills-degraded', source, reason })
      }),
    now,
  })
  return async (asked) => {
    const { skill_id: id, version } = asked
    const skill = skill_cache.goodsOf({ id, version }).pushed === true ? await skill_cache.find(id, version) : null
    if (!skill) return verdicts.of(asked, placeOf(settings()))
    const refusal = pushRefusal(env, scope, skill.manifest)
    if (refusal !== null) return { verdict: 'deny', reason: refusal, asked_at: null, cached: false }
    const approval = pushApproval(env, skill.manifest, (tool) => {
      const found = toolbox.forPlan(tool)
      return found.ok && onlyReads(found.definition)
    })
    const verdict = await verdicts.of(asked, placeOf(settings()))
    return approval === null ? verdict : { ...verdict, approval }
  }
}
