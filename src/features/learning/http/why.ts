import { lookUpReflex } from '../../../artifacts/look-up.ts'
import { withComputing } from '../../../http/auth/computing.ts'
import { resource, serve } from '../../../http/describe/operation.ts'
import { notFound } from '../../../http/problems/refusals.ts'
import { storeOf } from '../../../store/store.ts'
import type { EventFacts, ProgramWhy, ReflexWhy } from '../contract/why.ts'
import { why } from '../operations/why.ts'

const SILENT: ProgramWhy = { would: null, points: null, reasons: [] }
const HIDDEN: ProgramWhy = { ...SILENT, reasons: ['Its code is hidden from this key, so that it says no more.'] }

export const whyRoutes = resource().openapiRoutes([
  serve(why, async ({ env, var: { principal } }, { params: { scope, id } }) => {
    const text = await env.SCOPE.getByName(scope).eventFacts(id)
    if (text === null)
      throw notFound(
        `The scope ${scope} has no event ${id}: it never had it, a filter left it out, or retention has deleted what reflexes saw.`,
      )
    const { saw, reflexes, ...event } = JSON.parse(text) as EventFacts
    return withComputing(principal, async (computing) => {
      const explained: ReflexWhy[] = []
      for (const { learned, ...facts } of reflexes) {
        const { version } = facts
        const asked = learned && version !== null ? await lookUpReflex(storeOf(env), { id: facts.id, version }, { key: principal }) : null
        let told = learned ? HIDDEN : SILENT
        if (asked?.reads) {
          const { hash, code } = asked.version
          const ran = await env.LEARNER.getByName(scope).explain({ hash, code, saw: JSON.stringify(saw) })
          computing.spend(ran.fuel)
          told = ran.why
        }
        explained.push({ ...facts, ...told, reasons: [...facts.reasons, ...told.reasons] })
      }
      return { scope, ...event, reflexes: explained }
    })
  }),
])
