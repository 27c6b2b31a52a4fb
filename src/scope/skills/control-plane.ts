import { placeOf } from '../../skills/manifest/compat.ts'
import type { SessionPorts } from '../../skills/session/ports.ts'
import { controlPlaneOf } from '../../tools/control-plane/client.ts'
import { NO_VERDICTS, Verdicts, type KeptVerdicts } from '../../tools/control-plane/verdicts.ts'
import type { Lanes } from '../effects/wiring.ts'
import { scopeHead } from '../log/spans.ts'

/** The state key of the verdicts, which serve while the control plane is away. */
const KEY = 'control_plane'

/** The policy of the deployment's control plane, if it has one. */
export function composePolicy({ env, database, unit, settings, now }: Lanes): Pick<SessionPorts, 'controlPlane'> {
  const control_plane = controlPlaneOf(env)
  if (!control_plane) return {}
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
  return { controlPlane: async (asked) => verdicts.of(asked, placeOf(settings())) }
}
