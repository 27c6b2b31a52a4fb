import { evaluate, run } from '../../contract/operations/reflexes.ts'
import { evaluateRecordings } from '../../reflexes/evaluation.ts'
import { isolateSandbox } from '../../reflexes/isolate-sandbox.ts'
import { sampleContext } from '../../reflexes/reflex-context.ts'
import { runReflex } from '../../reflexes/run-reflex.ts'
import { withComputing } from '../auth/computing.ts'
import { resource } from '../describe/describe.ts'
import { serve } from '../describe/operation.ts'
import { demandCoverage } from '../auth/middleware.ts'
import { reflexActingRoutes } from './acting.ts'
import { reflexAt } from '../artifacts/path.ts'
import { readable } from '../artifacts/sealed.ts'
import { storeOf } from '../../store/store.ts'

/** Recordings per page. The scope limits a page by its bytes, too. */
const PAGE = 100
const runRoutes = resource().openapiRoutes([
  serve(run, async (c, { params: { ref }, body: { context } }) => {
    const program = readable('reflex', await reflexAt(storeOf(c.env), ref, c.var.principal))
    return withComputing(c.var.principal, (computing) => {
      const ran = runReflex(isolateSandbox(), program, { ...sampleContext, ...context })
      computing.spend(ran.fuel)
      return ran
    })
  }),
  serve(evaluate, async (c, { params: { ref }, body: { scope, window } }) => {
    demandCoverage(c.var.principal, [{ scope }])
    const program = readable('reflex', await reflexAt(storeOf(c.env), ref, c.var.principal))
    const recorded = c.env.SCOPE.getByName(scope)
    const since = Date.now() - window
    return withComputing(c.var.principal, (computing) =>
      evaluateRecordings({
        sandbox: isolateSandbox(),
        program,
        identify: (calls) => recorded.identify(calls),
        read: (after) => recorded.recordings({ since, after, limit: PAGE }),
        computing,
      }),
    )
  }),
])

export const reflexRoutes = resource().route('/', runRoutes).route('/', reflexActingRoutes)
